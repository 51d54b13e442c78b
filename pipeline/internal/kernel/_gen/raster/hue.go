package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// hues has the constants of hues.
type hues struct {
	one, ties, which, lanes, full, half    Mem // dwords
	ofCircle, ofByte, ofSquare, halfSquare Mem // float32
}

func makeHues() hues {
	lanes := GLOBL("hueLanes", 24)
	for i := range 8 {
		DATA(4*i, U32(noByte<<24|uint32(i%4)*0x40404))
	}
	return hues{
		one: dwords("hueOne", 1), ties: dwords("hueTies", 256), which: dwords("hueWhich", 0xffffff), lanes: lanes,
		full: dwords("hueFull", 255), half: dwords("hueHalf", 128),
		ofCircle: floats("hueCircle", 85), ofByte: floats("hueByte", 255), ofSquare: floats("hueSquare", 65025), halfSquare: floats("hueHalfSquare", 32512),
	}
}

// hued is what turnHues knows of eight colours: dwords.
type hued struct{ high, span, isGrey VecVirtual }

// around is how far around the circle colours are; 6·span is once.
func around(s shuffles, x VecVirtual) (h hued, at VecVirtual) {
	var c [3]VecVirtual
	for i := range c {
		c[i] = YMM()
		VPSHUFB(s.channel[i], x, c[i])
	}
	r, g, b := c[0], c[1], c[2]
	h = hued{YMM(), YMM(), YMM()}
	low, isHigh, byGreen, byBlue := YMM(), YMM(), YMM(), YMM()
	at = YMM()
	VPMAXSD(r, g, h.high)
	VPMAXSD(b, h.high, h.high)
	VPMINSD(r, g, low)
	VPMINSD(b, low, low)
	VPSUBD(low, h.high, h.span)
	VPADDD(h.span, h.span, low) // twice
	VPSUBD(r, b, byGreen)
	VPADDD(low, byGreen, byGreen)
	VPADDD(low, low, byBlue)
	VPADDD(byBlue, low, low) // six times
	VPADDD(r, byBlue, byBlue)
	VPSUBD(g, byBlue, byBlue)
	VPSUBD(b, g, at)
	VPSRAD(U8(31), at, b)
	VPAND(low, b, b)
	VPADDD(b, at, at)
	VPCMPEQD(h.high, g, isHigh)
	VPBLENDVB(isHigh, byGreen, byBlue, byBlue)
	VPCMPEQD(h.high, r, isHigh)
	VPBLENDVB(isHigh, at, byBlue, at)
	VPXOR(low, low, low)
	VPCMPEQD(h.span, low, h.isGrey)
	return h, at
}

// turnHues: quotients of whole numbers below 2²⁴ are so far from a whole number, where they are none, that rounding to float32 makes them none.
func turnHues(s shuffles, c hues) {
	TEXT("turnHues", NOSPLIT, "func(p *byte, n int, turned *[512]uint32)")
	Doc("turnHues turns the hues of n pixels, 8 at a time; n is a multiple of it. turned has a word for each hue: the share of the saturation that the middle",
		"channel loses, and, for red, green and blue from the lowest byte on, which of highest, middle and lowest value they become, 0 to 2. The second",
		"half of the words is for hues that come out whole. 4 bytes behind the pixels are read.")
	Pragma("noescape")
	p, n, turned := asm.Pointer("p"), asm.Pointer("n"), asm.Pointer("turned")
	Label("group")
	x := loadPixels(p)
	h, at := around(s, x)
	divisor, quotient, hue, t := YMM(), YMM(), YMM(), YMM()
	VPMAXSD(c.one, h.span, divisor)
	VPADDD(divisor, divisor, divisor)
	VCVTDQ2PS(divisor, divisor)
	VCVTDQ2PS(at, at)
	VMULPS(c.ofCircle, at, at)
	VDIVPS(divisor, at, quotient)
	VCVTTPS2DQ(quotient, hue)
	VCVTDQ2PS(hue, t)
	VMULPS(divisor, t, t)
	VCMPPS(U8(0), at, t, t)
	VPAND(c.ties, t, t)
	VPADDD(t, hue, hue)
	entry := YMM()
	VPXOR(entry, entry, entry)
	VPCMPEQD(t, t, t)
	VPGATHERDD(t, Mem{Base: turned, Index: hue, Scale: 4}, entry)
	saturation := saturationOf(c, h)
	out := mergeColours(c, h, entry, saturation)
	original := YMM()
	VPSHUFB(s.pixel, x, original)
	VPBLENDVB(h.isGrey, original, out, out)
	VPSHUFB(s.join, out, out)
	s.storePixels(out, p)
	nextPixels(p, n)
}

// saturationOf is 255 · span ÷ high, cut off.
func saturationOf(c hues, h hued) VecVirtual {
	v, high := YMM(), YMM()
	VCVTDQ2PS(h.span, v)
	VMULPS(c.ofByte, v, v)
	VPMAXSD(c.one, h.high, high)
	VCVTDQ2PS(high, high)
	VDIVPS(high, v, v)
	VCVTTPS2DQ(v, v)
	return v
}

// mergeColours makes pixels in dwords of values, saturations and what becomes of their hues.
func mergeColours(c hues, h hued, entry, saturation VecVirtual) VecVirtual {
	middle, t, low := YMM(), YMM(), YMM()
	VPSRLD(U8(24), entry, middle)
	VCVTDQ2PS(middle, middle)
	VCVTDQ2PS(saturation, t)
	VMULPS(t, middle, middle)
	VMOVUPS(c.ofSquare, t)
	VSUBPS(middle, t, middle)
	VCVTDQ2PS(h.high, t)
	VMULPS(t, middle, middle)
	VADDPS(c.halfSquare, middle, middle)
	VDIVPS(c.ofSquare, middle, middle)
	VCVTTPS2DQ(middle, middle)
	VPSLLD(U8(8), middle, middle)
	VMOVDQU(c.full, low)
	VPSUBD(saturation, low, low)
	VPMADDWD(h.high, low, low)
	VPADDD(c.half, low, low)
	VPSRLD(U8(8), low, t)
	VPADDD(t, low, low)
	VPSRLD(U8(8), low, low)
	VPSLLD(U8(16), low, low)
	VPOR(middle, low, low)
	VPOR(h.high, low, low)
	VPAND(c.which, entry, t)
	VPADDD(c.lanes, t, t)
	VPSHUFB(t, low, low)
	return low
}
