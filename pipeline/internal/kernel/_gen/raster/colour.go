package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// Kernels of pixels work on eight at a time: four in the first 12 bytes of each half of a register, as dwords once they are spread.

const noByte = 0x80 // of what shuffles take: zero

// twice is a constant of 16 bytes that both halves of a register have.
func twice(name string, bytes [16]byte) Mem {
	m := GLOBL(name, 24) // RODATA | NOPTR
	for i := range 32 {
		DATA(i, U8(bytes[i%16]))
	}
	return m
}

// floats is a constant float32, eight times, by its bits: assembly takes a whole number for an integer.
func floats(name string, x float32) Mem { return dwords(name, math.Float32bits(x)) }

// dwords is a constant of 32 bits, eight times.
func dwords(name string, x uint32) Mem {
	m := GLOBL(name, 24)
	for i := range 8 {
		DATA(4*i, U32(x))
	}
	return m
}

// wordPairs is a constant of two words, eight times.
func wordPairs(name string, low, high uint16) Mem { return dwords(name, uint32(high)<<16|uint32(low)) }

// spread is a shuffle that makes dwords of four pixels: bytes 0 to 3 of each are those of the pixel that which names, or zero.
func spread(name string, which [4]int) Mem {
	var b [16]byte
	for i := range b {
		b[i] = noByte
		if k := which[i%4]; k >= 0 {
			b[i] = byte(3*(i/4) + k)
		}
	}
	return twice(name, b)
}

// shuffles are those that spread pixels, and the one that joins them again.
type shuffles struct {
	channel                                [3]Mem
	pixel, redGreen, greenBlue, join, grey Mem
	order                                  Mem // of dwords, three of each half
}

func makeShuffles() shuffles {
	s := shuffles{
		channel: [3]Mem{
			spread("colourRed", [4]int{0, -1, -1, -1}), spread("colourGreen", [4]int{1, -1, -1, -1}), spread("colourBlue", [4]int{2, -1, -1, -1}),
		},
		pixel: spread("colourPixel", [4]int{0, 1, 2, -1}), redGreen: spread("colourRedGreen", [4]int{0, -1, 1, -1}),
		greenBlue: spread("colourGreenBlue", [4]int{1, -1, 2, -1}),
	}
	var join, grey [16]byte
	for i := range join {
		join[i], grey[i] = byte(4*(i/3)+i%3), byte(4*(i/3))
		if i >= 12 {
			join[i], grey[i] = noByte, noByte
		}
	}
	s.order = GLOBL("colourOrder", 24)
	for i, k := range []uint32{0, 1, 2, 4, 5, 6, 7, 7} {
		DATA(4*i, U32(k))
	}
	s.join, s.grey = twice("colourJoin", join), twice("colourGrey", grey)
	return s
}

// loadPixels loads eight pixels, and 4 bytes behind them.
func loadPixels(p GPVirtual) VecVirtual {
	x := YMM()
	VMOVDQU(Mem{Base: p}, x.AsX())
	VINSERTI128(U8(1), Mem{Base: p, Disp: 12}, x, x)
	return x
}

// storePixels stores eight pixels that lie as loadPixels has them, and nothing behind them: what is loaded next would wait for that.
func (s shuffles) storePixels(out VecVirtual, p GPVirtual) {
	order, half := YMM(), XMM()
	VMOVDQU(s.order, order)
	VPERMD(out, order, out)
	VMOVDQU(out.AsX(), Mem{Base: p})
	VEXTRACTI128(U8(1), out, half)
	VMOVQ(half, Mem{Base: p, Disp: 16})
}

// luma has the constants of Pillow's grey: products of words are summed in pairs, green by halves.
type luma struct{ redGreen, greenBlue, half Mem }

func makeLuma() luma {
	return luma{wordPairs("lumaRedGreen", 19595, 19235), wordPairs("lumaGreenBlue", 19235, 7471), dwords("lumaHalf", 1<<15)}
}

// greysOf is the grey of eight pixels, in dwords.
func (l luma) greysOf(s shuffles, x VecVirtual) VecVirtual {
	g, t := YMM(), YMM()
	VPSHUFB(s.redGreen, x, g)
	VPMADDWD(l.redGreen, g, g)
	VPSHUFB(s.greenBlue, x, t)
	VPMADDWD(l.greenBlue, t, t)
	VPADDD(t, g, g)
	VPADDD(l.half, g, g)
	VPSRLD(U8(16), g, g)
	return g
}

// loopPixels goes on with the next eight pixels, of n.
func loopPixels(p, n GPVirtual) {
	ADDQ(U8(24), p)
	SUBQ(U8(8), n)
	JG(LabelRef("group"))
}

// nextPixels is loopPixels of a kernel that has nothing more to do.
func nextPixels(p, n GPVirtual) {
	loopPixels(p, n)
	VZEROUPPER()
	RET()
}

func sumGreys(s shuffles, l luma) {
	TEXT("sumGreys", NOSPLIT, "func(p *byte, n int) uint64")
	Doc("sumGreys sums the greys of n pixels, 8 at a time; n is a multiple of it and at most 1<<24. 4 bytes behind them are read.")
	Pragma("noescape")
	p, n, sum := asm.Pointer("p"), asm.Pointer("n"), YMM()
	VPXOR(sum, sum, sum)
	Label("group")
	VPADDD(l.greysOf(s, loadPixels(p)), sum, sum)
	loopPixels(p, n)
	wide, high, x, out := YMM(), YMM(), XMM(), GP64()
	VPXOR(wide, wide, wide)
	VPUNPCKHDQ(wide, sum, high)
	VPUNPCKLDQ(wide, sum, sum)
	VPADDQ(high, sum, sum)
	VEXTRACTI128(U8(1), sum, x)
	VPADDQ(sum.AsX(), x, x)
	VPSHUFD(U8(0x4e), x, high.AsX())
	VPADDQ(high.AsX(), x, x)
	VMOVQ(x, out)
	Store(out, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// greys makes the greys of eight pixels.
type greys func(s shuffles, x VecVirtual) VecVirtual

func setGreys(s shuffles, name, doc string, greysOf greys) {
	TEXT(name, NOSPLIT, "func(p *byte, n int)")
	Doc(doc)
	Pragma("noescape")
	p, n := asm.Pointer("p"), asm.Pointer("n")
	Label("group")
	x := loadPixels(p)
	g := greysOf(s, x)
	VPSHUFB(s.grey, g, g)
	s.storePixels(g, p)
	nextPixels(p, n)
}

// bounds are the numbers that mixtures are held between.
type bounds struct{ most, least, byteMost Mem }

// mix is base + factor·d for float32 of both, as a byte in a dword; d is used up.
func (b bounds) mix(base, d, factor VecVirtual) {
	zero := YMM()
	VMULPS(factor, d, d)
	VMINPS(b.most, d, d)
	VMAXPS(b.least, d, d)
	VADDPS(base, d, d)
	VPXOR(zero, zero, zero)
	VMAXPS(zero, d, d)
	VMINPS(b.byteMost, d, d)
	VCVTTPS2DQ(d, d)
}

// broadcast is a parameter of float32, in every dword.
func broadcast(name string) VecVirtual {
	v := asm.Vector()
	VBROADCASTSS(asm.Param(name), v)
	return v
}

func mixGreys(s shuffles, l luma, b bounds) {
	TEXT("mixGreys", NOSPLIT, "func(p *byte, n int, factor float32)")
	Doc("mixGreys adds to the grey of each of n pixels, 8 at a time, factor times what each channel has more than it; n is a multiple of 8. 4 bytes",
		"behind them are read.")
	Pragma("noescape")
	p, n, factor := asm.Pointer("p"), asm.Pointer("n"), broadcast("factor")
	Label("group")
	x := loadPixels(p)
	grey, base, out := l.greysOf(s, x), YMM(), YMM()
	VCVTDQ2PS(grey, base)
	for c := range s.channel {
		d := YMM()
		VPSHUFB(s.channel[c], x, d)
		VPSUBD(grey, d, d)
		VCVTDQ2PS(d, d)
		b.mix(base, d, factor)
		joinChannel(c, d, out)
	}
	VPSHUFB(s.join, out, out)
	s.storePixels(out, p)
	nextPixels(p, n)
}

// joinChannel puts bytes in dwords of a channel, which are used up, with those of the channels before.
func joinChannel(c int, d, out VecVirtual) {
	if c == 0 {
		VMOVDQA(d, out)
		return
	}
	VPSLLD(U8(8*c), d, d)
	VPOR(d, out, out)
}
