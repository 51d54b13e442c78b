package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// Sixteen pixels lie in the first 48 of 64 bytes; the others are zero. Shuffles make dwords of them.

// wideSpread is a shuffle that makes a dword of each pixel, as spread is.
func wideSpread(name string, which [4]int) Mem {
	var b [64]byte
	for i := range b {
		b[i] = 63
		if k := which[i%4]; k >= 0 {
			b[i] = byte(3*(i/4) + k)
		}
	}
	return asm.All(name, b)
}

// wideLuma has what Pillow's grey takes, as luma has it: shuffles and weights of red and green, of green and blue, and a half.
type wideLuma struct{ redGreen, redGreenWeights, greenBlue, greenBlueWeights, half Op }

func makeWideLuma() wideLuma {
	return wideLuma{
		wideSpread("wideRedGreen", [4]int{0, -1, 1, -1}), asm.Words("wideRedGreenWeights", 19595, 19235),
		wideSpread("wideGreenBlue", [4]int{1, -1, 2, -1}), asm.Words("wideGreenBlueWeights", 19235, 7471),
		asm.Dwords("wideHalf", 1<<15),
	}
}

// load has the constants in registers.
func (l wideLuma) load() wideLuma {
	return wideLuma{
		asm.Load(l.redGreen), asm.Load(l.redGreenWeights), asm.Load(l.greenBlue), asm.Load(l.greenBlueWeights), asm.Load(l.half),
	}
}

// greysOf is the grey of sixteen pixels, in dwords.
func (l wideLuma) greysOf(x VecVirtual) VecVirtual {
	g, t := ZMM(), ZMM()
	VPERMB(x, l.redGreen, g)
	VPMADDWD(l.redGreenWeights, g, g)
	VPERMB(x, l.greenBlue, t)
	VPMADDWD(l.greenBlueWeights, t, t)
	VPADDD(l.half, g, g)
	VPADDD(t, g, g)
	VPSRLD(U8(16), g, g)
	return g
}

// eachSixteen takes 16 of n > 0 pixels at a time, and at last those that are left. change returns what is stored in their place, or nil. Nothing behind
// them is stored, not even by a mask: what is loaded next would wait for that.
func eachSixteen(p, n GPVirtual, change func(x VecVirtual) VecVirtual) {
	SUBQ(U8(16), n)
	JL(LabelRef("tail"))
	Label("group")
	x, end := ZMM(), XMM()
	VMOVDQU(Mem{Base: p}, x.AsY())
	VINSERTI32X4(U8(2), Mem{Base: p, Disp: 32}, x, x)
	if out := change(x); out != nil {
		VMOVDQU(out.AsY(), Mem{Base: p})
		VEXTRACTI32X4(U8(2), out, end)
		VMOVDQU(end, Mem{Base: p, Disp: 32})
	}
	ADDQ(U8(48), p)
	SUBQ(U8(16), n)
	JGE(LabelRef("group"))

	Label("tail")
	ADDQ(U8(16), n)
	JZ(LabelRef("done"))
	LEAQ(Mem{Base: n, Index: n, Scale: 2}, n)
	some := firstBytes(n)
	x = ZMM()
	VMOVDQU8_Z(Mem{Base: p}, some, x)
	if out := change(x); out != nil {
		VMOVDQU8(out, some, Mem{Base: p})
	}
	Label("done")
}

func mixGreysWide(l wideLuma) {
	TEXT("mixGreysAVX512", NOSPLIT, "func(p *byte, n int, factor float32)")
	Doc("mixGreysAVX512 adds to the grey of each of n > 0 pixels factor times what each channel has more than it; factor is at most 1<<20 either way.")
	Pragma("noescape")
	p, n, factor := asm.Pointer("p"), asm.Pointer("n"), broadcast("factor")
	l = l.load()
	var channel [3]VecVirtual
	for c, name := range []string{"wideRed", "wideGreen", "wideBlue"} {
		channel[c] = asm.Load(wideSpread(name, [4]int{c, -1, -1, -1}))
	}
	join := asm.Load(asm.All("wideJoin", joined()))
	eachSixteen(p, n, func(x VecVirtual) VecVirtual {
		grey, base := l.greysOf(x), ZMM()
		VCVTDQ2PS(grey, base)
		var out [3]VecVirtual
		for c := range out {
			d := ZMM()
			VPERMB(x, channel[c], d)
			VPSUBD(grey, d, d)
			VCVTDQ2PS(d, d)
			VMULPS(factor, d, d)
			VADDPS(base, d, d)
			VCVTTPS2DQ(d, d)
			out[c] = d
		}
		VPACKSSDW(out[1], out[0], out[0])
		VPACKSSDW(out[2], out[2], out[2])
		VPACKUSWB(out[2], out[0], out[0]) // each lane: four pixels' red, green, blue, blue
		VPERMB(out[0], join, out[0])
		return out[0]
	})
	VZEROUPPER()
	RET()
}

// joined says where the channels of pixels lie in lanes of four each.
func joined() (b [64]byte) {
	for i := range 48 {
		pixel, c := i/3, i%3
		b[i] = byte(16*(pixel/4) + 4*c + pixel%4)
	}
	return b
}

func sumGreysWide(l wideLuma) {
	TEXT("sumGreysAVX512", NOSPLIT, "func(p *byte, n int) uint64")
	Doc("sumGreysAVX512 sums the greys of n pixels, more than none and at most 1<<24.")
	Pragma("noescape")
	p, n, sum := asm.Pointer("p"), asm.Pointer("n"), ZMM()
	l = l.load()
	asm.Zero(sum)
	eachSixteen(p, n, func(x VecVirtual) VecVirtual {
		VPADDD(l.greysOf(x), sum, sum)
		return nil
	})
	other, half, out := YMM(), XMM(), GP32() // 255<<24 fits in a dword
	VEXTRACTI32X8(U8(1), sum, other)
	VPADDD(other, sum.AsY(), other)
	VEXTRACTI128(U8(1), other, half)
	VPADDD(other.AsX(), half, half)
	for _, order := range []U8{0x4e, 0xb1} {
		VPSHUFD(order, half, other.AsX())
		VPADDD(other.AsX(), half, half)
	}
	VMOVD(half, out)
	Store(out.As64(), ReturnIndex(0))
	VZEROUPPER()
	RET()
}
