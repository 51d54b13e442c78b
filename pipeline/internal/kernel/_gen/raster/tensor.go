package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// tensorLuma has the constants of torchvision's grey: one product, and two that are added with one rounding each.
type tensorLuma struct{ red, green, blue Mem }

func makeTensorLuma() tensorLuma {
	return tensorLuma{floats("tensorRed", 0.2989), floats("tensorGreen", 0.587), floats("tensorBlue", 0.114)}
}

// channelOf is a channel of eight pixels, as float32.
func channelOf(s shuffles, x VecVirtual, c int) VecVirtual {
	v := YMM()
	VPSHUFB(s.channel[c], x, v)
	VCVTDQ2PS(v, v)
	return v
}

// greysOf is the grey of eight pixels, in dwords.
func (l tensorLuma) greysOf(s shuffles, x VecVirtual) VecVirtual {
	g := channelOf(s, x, 0)
	VMULPS(l.red, g, g)
	VFMADD231PS(l.green, channelOf(s, x, 1), g)
	VFMADD231PS(l.blue, channelOf(s, x, 2), g)
	VCVTTPS2DQ(g, g)
	return g
}

func findTensorGreys(s shuffles, l tensorLuma) {
	TEXT("findTensorGreys", NOSPLIT, "func(dst, p *byte, n int)")
	Doc("findTensorGreys makes the greys of n pixels, 8 at a time; n is a multiple of it. 4 bytes behind the pixels are read.")
	Pragma("noescape")
	dst, p, n := asm.Pointer("dst"), asm.Pointer("p"), asm.Pointer("n")
	Label("group")
	g, half := l.greysOf(s, loadPixels(p)), XMM()
	VEXTRACTI128(U8(1), g, half)
	VPACKUSDW(half, g.AsX(), half)
	VPACKUSWB(half, half, half)
	VMOVQ(half, Mem{Base: dst})
	ADDQ(U8(8), dst)
	nextPixels(p, n)
}

func mixTensorGreys(s shuffles, l tensorLuma, byteMost Mem) {
	TEXT("mixTensorGreys", NOSPLIT, "func(p *byte, n int, factor, rest float32)")
	Doc("mixTensorGreys mixes each channel of n pixels, 8 at a time, with torchvision's grey: factor parts with rest; n is a multiple of 8. 4 bytes behind",
		"them are read.")
	Pragma("noescape")
	p, n, factor, rest := asm.Pointer("p"), asm.Pointer("n"), broadcast("factor"), broadcast("rest")
	Label("group")
	x := loadPixels(p)
	grey, out, zero := l.greysOf(s, x), YMM(), YMM()
	VCVTDQ2PS(grey, grey)
	VPXOR(zero, zero, zero)
	for c := range s.channel {
		d := channelOf(s, x, c)
		VMULPS(factor, d, d)
		VFMADD231PS(grey, rest, d)
		VMAXPS(zero, d, d)
		VMINPS(byteMost, d, d)
		VCVTTPS2DQ(d, d)
		joinChannel(c, d, out)
	}
	VPSHUFB(s.join, out, out)
	s.storePixels(out, p)
	nextPixels(p, n)
}

// unitHues has the constants of hues from 0 to 1. sectors are shuffles of pixels for each sixth of the circle, of what mergeUnits makes.
type unitHues struct{ unit, one, two, four, six, sixth, bytes, lanes, sectors Mem }

func makeUnitHues(c hues) unitHues {
	sectors := GLOBL("hueSectors", 24)
	for i, order := range [8][3]uint32{{0, 1, 2}, {3, 0, 2}, {2, 0, 1}, {2, 3, 0}, {1, 2, 0}, {0, 2, 3}, {0, 1, 2}, {0, 1, 2}} {
		DATA(4*i, U32(order[0]|order[1]<<8|order[2]<<16))
	}
	return unitHues{
		unit: floats("hueUnit", 1.0/255), one: floats("hueFloatOne", 1), two: floats("hueTwo", 2), four: floats("hueFour", 4), six: floats("hueSix", 6),
		sixth: floats("hueSixth", 1.0/6), bytes: floats("hueBytes", 255.999), lanes: c.lanes, sectors: sectors,
	}
}

// unitHued is what turnTensorHues knows of eight colours: float32, and a mask of greys.
type unitHued struct{ high, span, hue, isGrey VecVirtual }

// findHues follows torchvision step by step. What a grey has for a hue does not matter.
func (c unitHues) findHues(s shuffles, x VecVirtual) unitHued {
	var v [3]VecVirtual
	for i := range v {
		v[i] = channelOf(s, x, i)
		VMULPS(c.unit, v[i], v[i])
	}
	r, g, b := v[0], v[1], v[2]
	h := unitHued{YMM(), YMM(), YMM(), YMM()}
	isRed, isGreen, low := YMM(), YMM(), YMM()
	VMAXPS(r, g, h.high)
	VMAXPS(b, h.high, h.high)
	VMINPS(r, g, low)
	VMINPS(b, low, low)
	VSUBPS(low, h.high, h.span)
	VCMPPS(U8(0), low, h.high, h.isGrey)
	VCMPPS(U8(0), r, h.high, isRed)
	VCMPPS(U8(0), g, h.high, isGreen)
	for _, lack := range v {
		VSUBPS(lack, h.high, lack)
		VDIVPS(h.span, lack, lack)
	}
	VADDPS(c.four, g, low)
	VSUBPS(r, low, h.hue)
	VADDPS(c.two, r, low)
	VSUBPS(b, low, low)
	VBLENDVPS(isGreen, low, h.hue, h.hue)
	VSUBPS(g, b, low)
	VBLENDVPS(isRed, low, h.hue, h.hue)
	VMULPS(c.sixth, h.hue, h.hue)
	VADDPS(c.one, h.hue, h.hue)
	VROUNDPS(U8(3), h.hue, low)
	VSUBPS(low, h.hue, h.hue)
	return h
}

// asByte is a value from 0 to 1 as 8 bits of a dword.
func (c unitHues) asByte(v VecVirtual) {
	VMULPS(c.bytes, v, v)
	VCVTTPS2DQ(v, v)
}

// mergeUnits makes dwords of what channels may become: the highest value, the rising, the lowest and the falling one.
func (c unitHues) mergeUnits(h unitHued, part VecVirtual) VecVirtual {
	saturation, one, out, zero := h.span, YMM(), YMM(), YMM()
	VDIVPS(h.high, saturation, saturation)
	VMULPS(saturation, part, part)
	VMOVUPS(c.one, one)
	VPXOR(zero, zero, zero)
	VMOVAPS(h.high, out)
	c.asByte(out)
	value := func(v VecVirtual, shift uint8) {
		VMULPS(h.high, v, v)
		VMAXPS(zero, v, v)
		VMINPS(one, v, v)
		c.asByte(v)
		VPSLLD(U8(shift), v, v)
		VPOR(v, out, out)
	}
	rising, falling := YMM(), YMM()
	VSUBPS(saturation, one, saturation) // the rest
	VADDPS(saturation, part, rising)
	VSUBPS(part, one, falling)
	value(rising, 8)
	value(saturation, 16)
	value(falling, 24)
	return out
}

func turnTensorHues(s shuffles, c unitHues) {
	TEXT("turnTensorHues", NOSPLIT, "func(p *byte, n int, by float32)")
	Doc("turnTensorHues turns the hues of n pixels, 8 at a time, as torchvision does; n is a multiple of it. 4 bytes behind them are read.")
	Pragma("noescape")
	p, n, by := asm.Pointer("p"), asm.Pointer("n"), broadcast("by")
	Label("group")
	x := loadPixels(p)
	h := c.findHues(s, x)
	whole, sector, order := YMM(), YMM(), YMM()
	VADDPS(by, h.hue, h.hue)
	VROUNDPS(U8(1), h.hue, whole)
	VSUBPS(whole, h.hue, h.hue)
	VMULPS(c.six, h.hue, h.hue)
	VCVTTPS2DQ(h.hue, sector)
	VCVTDQ2PS(sector, whole)
	VSUBPS(whole, h.hue, h.hue)
	out := c.mergeUnits(h, h.hue)
	VPERMD(c.sectors, sector, order)
	VPANDN(order, h.isGrey, order)
	VPADDD(c.lanes, order, order)
	VPSHUFB(order, out, out)
	VPSHUFB(s.join, out, out)
	s.storePixels(out, p)
	nextPixels(p, n)
}
