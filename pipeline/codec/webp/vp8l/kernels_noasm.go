//go:build !amd64 || purego

package vp8l

const withoutAssembly = "vp8l: built without assembly"

func readLiterals(_ *byte, _, _ int, _, _, _, _ *uint32, _ int, _ *uint32, _ int, _ *uint32, _, _ int) (n, at int) {
	panic(withoutAssembly)
}

func predictAbove(_, _ *uint32, _ int) { panic(withoutAssembly) }

func predictMeanAbove(_, _ *uint32, _ int) { panic(withoutAssembly) }

func predictLeft(_, _ *uint32, _ int) { panic(withoutAssembly) }

func predictMean3(_, _ *uint32, _ int) { panic(withoutAssembly) }

func predictMeanLeft(_, _ *uint32, _ int) { panic(withoutAssembly) }

func predictMean4(_, _ *uint32, _ int) { panic(withoutAssembly) }

func predictNearer(_, _ *uint32, _ int) { panic(withoutAssembly) }

func predictContinued(_, _ *uint32, _ int) { panic(withoutAssembly) }

func predictContinuedByHalf(_, _ *uint32, _ int) { panic(withoutAssembly) }

func addColors(_, _ *uint32, _, _ int) { panic(withoutAssembly) }

func rgbRow(_ *byte, _ *uint32, _, _ int) { panic(withoutAssembly) }
