//go:build !amd64 || purego

package raster

func hasFused(string) bool { return false }

func widenBytes(*float32, *byte, int) { panic("raster: built without assembly") }

func pairSums(_, _ *float32, _ *int, _ *float32, _, _ int) { panic("raster: built without assembly") }

func roundSums(_, _ *byte, _ *float32, _, _ float32, _ int) { panic("raster: built without assembly") }

func exactSums(_ *[8]float32, _ *float32, _ *int, _ *[8]int, _ *float32, _, _ int) {
	panic("raster: built without assembly")
}
