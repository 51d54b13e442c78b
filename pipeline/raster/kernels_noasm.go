//go:build !amd64 || purego

package raster

func hasFused(string) bool { return false }

func widenBytes(*float32, *byte, int) { panic("raster: built without assembly") }

func pairSums(_, _ *float32, _ *int, _ *float32, _, _ int) { panic("raster: built without assembly") }

func roundSums(_, _ *byte, _ *float32, _, _ float32, _ int) { panic("raster: built without assembly") }

func exactSums(_ *[8]float32, _ *float32, _ *int, _ *[8]int, _ *float32, _, _ int) {
	panic("raster: built without assembly")
}

func sumGreys(*byte, int) uint64 { panic("raster: built without assembly") }

func sumGreysAVX512(*byte, int) uint64 { panic("raster: built without assembly") }

func setGreys(*byte, int) { panic("raster: built without assembly") }

func mixGreys(*byte, int, float32) { panic("raster: built without assembly") }

func mixGreysAVX512(*byte, int, float32) { panic("raster: built without assembly") }

func sharpenBytes(_, _, _, _ *byte, _ int, _ float32) { panic("raster: built without assembly") }

func sharpenBytesAVX512(_, _, _, _ *byte, _ int, _ float32) { panic("raster: built without assembly") }

func turnHues(*byte, int, *[512]uint32) { panic("raster: built without assembly") }

func lookUpBytes(*byte, *[256]byte, int) { panic("raster: built without assembly") }

func lookUpPixels(*byte, *[3][256]byte, int) { panic("raster: built without assembly") }

func findRanges(_, _ *[96]byte, _ *byte, _ int) { panic("raster: built without assembly") }

func findTensorGreys(_, _ *byte, _ int) { panic("raster: built without assembly") }

func setTensorGreys(*byte, int) { panic("raster: built without assembly") }

func mixTensorGreys(*byte, int, float32, float32) { panic("raster: built without assembly") }

func turnTensorHues(*byte, int, float32) { panic("raster: built without assembly") }

func gatherAVX512(_, _ *byte, _, _, _, _, _, _, _, _ int) { panic("raster: built without assembly") }

func lookUpBytesAVX512(*byte, *[256]byte, int) { panic("raster: built without assembly") }

func lookUpPixelsAVX512(*byte, *[3][256]byte, int) { panic("raster: built without assembly") }
