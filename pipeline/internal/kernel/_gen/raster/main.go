// Command raster writes the AVX2 and FMA assembly of package raster. Run it through `go generate` in package raster.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!purego")
	widen()
	pairSums()
	roundSums()
	exactSums()
	Generate()
}

// pointer loads a parameter.
func pointer(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }
