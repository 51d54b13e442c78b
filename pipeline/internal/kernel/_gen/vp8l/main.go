// Command vp8l writes the AVX2 assembly of package vp8l: literals read, transforms undone, colors. Run it through `go generate` in package vp8l.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
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

// pointer loads a parameter.
func pointer(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

// doubles makes a constant of 32 bytes that repeats 32 bits.
func doubles(name string, v uint32) Mem {
	m := GLOBL(name, 24) // RODATA | NOPTR
	for i := range 8 {
		DATA(4*i, U32(v))
	}
	return m
}

// bytes32 makes a constant of 32 bytes that holds the 16 bytes b in both lanes.
func bytes32(name string, b [16]int) Mem {
	m := GLOBL(name, 24)
	for i := range 32 {
		DATA(i, U8(b[i%16]))
	}
	return m
}

// colors undoes differences of colors: 4 pixels at a time, all of one part.
func colors() {
	greens := bytes32("colorGreens", [16]int{128, 1, 128, 1, 128, 5, 128, 5, 128, 9, 128, 9, 128, 13, 128, 13})
	reds := bytes32("colorReds", [16]int{128, 2, 128, 128, 128, 6, 128, 128, 128, 10, 128, 128, 128, 14, 128, 128})
	byGreen := bytes32("colorByGreen", [16]int{128, 1, 128, 0, 128, 1, 128, 0, 128, 1, 128, 0, 128, 1, 128, 0})
	byRed := bytes32("colorByRed", [16]int{128, 2, 128, 128, 128, 2, 128, 128, 128, 2, 128, 128, 128, 2, 128, 128})
	low := doubles("colorLow", 0xff00ff)
	TEXT("addColors", NOSPLIT, "func(pix, parts *uint32, n, shift int)")
	Doc("addColors undoes differences of colors of n pixels, n a positive multiple of 4; parts are of 1<<shift ≥ 4 pixels.")
	Pragma("noescape")
	pix, parts, n, shift := pointer("pix"), pointer("parts"), pointer("n"), pointer("shift")
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
	greens := bytes32("rgbGreens", [16]int{1, 128, 1, 128, 5, 128, 5, 128, 9, 128, 9, 128, 13, 128, 13, 128})
	pack := bytes32("rgbPack", [16]int{2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, 128, 128, 128, 128})
	TEXT("rgbRow", NOSPLIT, "func(dst *byte, pix *uint32, n, green int)")
	Doc("rgbRow writes red, green and blue of n pixels, n a positive multiple of 8, and 4 zeros behind them. Where green is −1 green is added to",
		"red and blue, where it is 0 it is not.")
	Pragma("noescape")
	dst, pix, n := pointer("dst"), pointer("pix"), pointer("n")
	mask, v, t := YMM(), YMM(), YMM()
	VMOVD(pointer("green").As32(), mask.AsX())
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
