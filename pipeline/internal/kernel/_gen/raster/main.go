// Command raster writes the AVX2 and FMA assembly of package raster, or with -avx512 that of AVX-512. Run it through `go generate` in package raster.
package main

import (
	"flag"

	. "github.com/mmcloughlin/avo/build"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

func main() {
	wide := flag.Bool("avx512", false, "write kernels of AVX-512")
	flag.Parse()
	ConstraintExpr("!purego")
	if *wide {
		asm.Lanes = 4
		gatherWide()
		lookUpBytesWide()
		lookUpPixelsWide()
		sharpen("sharpenBytesAVX512")
		l := makeWideLuma()
		mixGreysWide(l)
		sumGreysWide(l)
	} else {
		kernels()
	}
	Generate()
}

// kernels are those of AVX2.
func kernels() {
	widen()
	pairSums()
	roundSums()
	exactSums()
	s, l := makeShuffles(), makeLuma()
	b := bounds{floats("mixMost", 512), floats("mixLeast", -512), floats("mixByte", 255)}
	sumGreys(s, l)
	setGreys(s, "setGreys", "setGreys makes all channels of n pixels the grey, 8 at a time; n is a multiple of it. 4 bytes behind them are read.", l.greysOf)
	mixGreys(s, l, b)
	sharpen("sharpenBytes")
	h, t := makeHues(), makeTensorLuma()
	turnHues(s, h)
	findTensorGreys(s, t)
	setGreys(s, "setTensorGreys", "setTensorGreys is setGreys with torchvision's grey.", t.greysOf)
	mixTensorGreys(s, t, b.byteMost)
	turnTensorHues(s, makeUnitHues(h))
	look := makeLookups()
	lookUpBytes(look)
	lookUpPixels(look, makePlanes())
	findRanges()
}
