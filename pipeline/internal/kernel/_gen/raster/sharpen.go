package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// sharpen has the words and dwords of a vector of bytes as unpacking leaves them, so that packing puts them in order again. What is cut to a byte's
// range is cut by packing.
func sharpen(name string) {
	size := 16 * asm.Lanes
	TEXT(name, NOSPLIT, "func(dst, above, here, below *byte, n int, factor float32)")
	Doc(fmt.Sprintf("%s makes n ≥ %d values of a row: factor, which is at most 1<<20 either way, times what the value of here has more than its blur,", name, size),
		"added to that. above, here and below are where the values to the left of the first one's neighbours lie; dst is where the first goes, and none of",
		"them.")
	Pragma("noescape")
	dst, rows := asm.Pointer("dst"), []GPVirtual{asm.Pointer("above"), asm.Pointer("here"), asm.Pointer("below")}
	last, i, zero, f := asm.Pointer("n"), GP64(), asm.Vector(), broadcast("factor")
	asm.Zero(zero)
	c := makeSharpening()
	SUBQ(U8(size), last)
	XORQ(i, i)
	Label("group")
	middle, blur := c.blur(rows, i)
	var out [2]VecVirtual
	for k, unpack := range unpackBytes {
		values := asm.Vector()
		unpack(zero, middle, values)
		out[k] = c.mixWords(values, blur[k], f)
	}
	VPACKUSWB(out[1], out[0], out[0])
	asm.Move(out[0], Mem{Base: dst, Index: i, Scale: 1})
	asm.NextGroup(i, last, uint64(size))
	VZEROUPPER()
	RET()
}

var (
	unpackBytes = [2]func(...Op){VPUNPCKLBW, VPUNPCKHBW}
	unpackWords = [2]func(...Op){VPUNPCKLWD, VPUNPCKHWD}
)

// sharpening has constants: pairs of weights, and 5042/65536, which is so little more than a thirteenth that the integer part of the product is that of
// the quotient for all sums.
type sharpening struct{ both, five, six, thirteenth, excess VecVirtual }

func makeSharpening() sharpening {
	return sharpening{
		asm.Load(asm.Words("sharpenBoth", 1<<8|1)), asm.Load(asm.Words("sharpenFive", 1<<8|5)), asm.Load(asm.Words("sharpenSix", 6<<8|6)),
		asm.Load(asm.Words("sharpenThirteenth", 5042)), asm.Load(asm.Words("sharpenExcess", 1, -1)),
	}
}

// blur returns the values in the middle, and the words of their blur: a thirteenth of the sum of the nine, the middle five times, and 6.
func (c sharpening) blur(rows []GPVirtual, i GPVirtual) (middle VecVirtual, sums [2]VecVirtual) {
	load := func(row, at int) VecVirtual { return asm.Load(Mem{Base: rows[row], Index: i, Scale: 1, Disp: 3 * at}) }
	middle = load(1, 1)
	for k, unpack := range unpackBytes {
		sums[k] = asm.Vector()
		unpack(c.six, middle, sums[k])
		VPMADDUBSW(c.five, sums[k], sums[k])
	}
	for _, pair := range [][2][2]int{{{0, 0}, {0, 1}}, {{0, 2}, {1, 0}}, {{1, 2}, {2, 0}}, {{2, 1}, {2, 2}}} {
		a, b := load(pair[0][0], pair[0][1]), load(pair[1][0], pair[1][1])
		for k, unpack := range unpackBytes {
			t := asm.Vector()
			unpack(b, a, t)
			VPMADDUBSW(c.both, t, t)
			VPADDW(t, sums[k], sums[k])
		}
	}
	for _, s := range sums {
		VPMULHUW(c.thirteenth, s, s)
	}
	return middle, sums
}

// mixWords is blur + factor·(values−blur), by float32, in words.
func (c sharpening) mixWords(values, blur, factor VecVirtual) VecVirtual {
	var out [2]VecVirtual
	for k, unpack := range unpackWords {
		base, d := asm.Vector(), asm.Vector()
		unpack(blur, values, base)
		VPMADDWD(c.excess, base, d)
		VPSRLD(U8(16), base, base)
		VCVTDQ2PS(base, base)
		VCVTDQ2PS(d, d)
		VMULPS(factor, d, d)
		VADDPS(base, d, d)
		VCVTTPS2DQ(d, d)
		out[k] = d
	}
	VPACKSSDW(out[1], out[0], out[0])
	return out[0]
}
