// Command vp8l writes the AVX2 assembly of package vp8l: literals read, transforms undone, colors. Run it through `go generate` in package vp8l.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

func main() {
	ConstraintExpr("!purego")
	literals()
	for _, p := range predictors() {
		p.write()
	}
	colors()
	rgb()
	Generate()
}

// colors undoes differences of colors: 4 pixels at a time, all of one part.
func colors() {
	greens := asm.Bytes("colorGreens", [16]int{128, 1, 128, 1, 128, 5, 128, 5, 128, 9, 128, 9, 128, 13, 128, 13})
	reds := asm.Bytes("colorReds", [16]int{128, 2, 128, 128, 128, 6, 128, 128, 128, 10, 128, 128, 128, 14, 128, 128})
	byGreen := asm.Bytes("colorByGreen", [16]int{128, 1, 128, 0, 128, 1, 128, 0, 128, 1, 128, 0, 128, 1, 128, 0})
	byRed := asm.Bytes("colorByRed", [16]int{128, 2, 128, 128, 128, 2, 128, 128, 128, 2, 128, 128, 128, 2, 128, 128})
	low := asm.Dwords("colorLow", 0xff00ff)
	TEXT("addColors", NOSPLIT, "func(pix, parts *uint32, n, shift int)")
	Doc("addColors undoes differences of colors of n pixels, n a positive multiple of 4; parts are of 1<<shift ≥ 4 pixels.")
	Pragma("noescape")
	pix, parts, n, shift := asm.Pointer("pix"), asm.Pointer("parts"), asm.Pointer("n"), asm.Pointer("shift")
	i, at, v, g, r, t := GP64(), GP64(), XMM(), XMM(), XMM(), XMM()
	XORQ(i, i)
	Label("group")
	SHRXQ(shift, i, at)
	VPBROADCASTD(Mem{Base: parts, Index: at, Scale: 4}, t)
	// The factors, times 8 in the upper byte's place: (g << 8) · (m << 3) >> 16 is g·m >> 5.
	VPSHUFB(byGreen, t, g)
	VPSHUFB(byRed, t, r)
	VPSRAW(U8(5), g, g)
	VPSRAW(U8(5), r, r)
	VMOVDQU(Mem{Base: pix, Index: i, Scale: 4}, v)
	VPSHUFB(greens, v, t)
	VPMULHW(t, g, g)
	VPAND(low, g, g)
	VPADDB(g, v, v)
	VPSHUFB(reds, v, t)
	VPMULHW(t, r, r)
	VPAND(low, r, r)
	VPADDB(r, v, v)
	VMOVDQU(v, Mem{Base: pix, Index: i, Scale: 4})
	ADDQ(U8(4), i)
	CMPQ(i, n)
	JL(LabelRef("group"))
	RET()
}

// rgb makes bytes of pixels, 8 at a time.
func rgb() {
	greens := asm.Bytes("rgbGreens", [16]int{1, 128, 1, 128, 5, 128, 5, 128, 9, 128, 9, 128, 13, 128, 13, 128})
	pack := asm.Bytes("rgbPack", [16]int{2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, 128, 128, 128, 128})
	TEXT("rgbRow", NOSPLIT, "func(dst *byte, pix *uint32, n, green int)")
	Doc("rgbRow writes red, green and blue of n pixels, n a positive multiple of 8, and 4 zeros behind them. Where green is −1 green is added to",
		"red and blue, where it is 0 it is not.")
	Pragma("noescape")
	dst, pix, n := asm.Pointer("dst"), asm.Pointer("pix"), asm.Pointer("n")
	mask, v, t := YMM(), YMM(), YMM()
	VMOVD(asm.Pointer("green").As32(), mask.AsX())
	VPBROADCASTD(mask.AsX(), mask)
	shuffle := YMM()
	VMOVDQU(greens, shuffle)
	Label("group")
	VMOVDQU(Mem{Base: pix}, v)
	VPSHUFB(shuffle, v, t)
	VPAND(mask, t, t)
	VPADDB(t, v, v)
	VPSHUFB(pack, v, v)
	VMOVDQU(v.AsX(), Mem{Base: dst})
	VEXTRACTI128(U8(1), v, v.AsX())
	VMOVDQU(v.AsX(), Mem{Base: dst, Disp: 12})
	ADDQ(U8(32), pix)
	ADDQ(U8(24), dst)
	SUBQ(U8(8), n)
	JG(LabelRef("group"))
	VZEROUPPER()
	RET()
}
