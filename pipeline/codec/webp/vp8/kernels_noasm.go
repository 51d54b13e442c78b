//go:build !amd64 || purego

package vp8

const withoutAssembly = "vp8: built without assembly"

func filterAcross(_, _, _ *byte, _, _ int, _ *int32, _ int) { panic(withoutAssembly) }

func filterDown(_, _, _ *byte, _, _ int, _ *int32, _ int) { panic(withoutAssembly) }

func transformBlocks(_, _ *int16) (magnitude int) { panic(withoutAssembly) }

func predictBlocks(_ *byte, _ int, _, _ *uint8, _ *int16) { panic(withoutAssembly) }

func predictLuma(_ *byte, _ int, _ *uint8, _, _ int, _ *int16) { panic(withoutAssembly) }

func predictChroma(_, _ *byte, _ int, _ *uint8, _, _ int, _ *int16) { panic(withoutAssembly) }

func upsampleRow(_, _, _ *byte, _ int) { panic(withoutAssembly) }

func colorRow(_, _, _, _ *byte, _ int) { panic(withoutAssembly) }

func readBlocks(_ *uint64, _ *uint8, _ *int32, _ *int16, _, _, _ *uint8, _, _, _ int) (n int) {
	panic(withoutAssembly)
}

func readBlockModes(_ *uint64, _, _, _, _ *uint8) { panic(withoutAssembly) }

func readCopied(_ *uint64, _ *byte, _ *uint64, _ *uint16, _ *int16, _ int) { panic(withoutAssembly) }

func scaleBlocks(_ *int16, _, _, _ *int32) { panic(withoutAssembly) }
