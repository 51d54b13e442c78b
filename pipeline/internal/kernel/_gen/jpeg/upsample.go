package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// weight31 is three times one byte and once its neighbour, for VPMADDUBSW.
var weight31 Mem

func h2v1() {
	weight31 = asm.Bytes("weight31", [16]int{3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1})
	one, two := asm.Words("upOne", 1), asm.Words("upTwo", 2)
	TEXT("h2v1Row", NOSPLIT, "func(dst, src *byte, n int)")
	Doc("h2v1Row doubles n >= 32 samples; src points at the neighbour before the first.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(GPVirtual)
	i := GP64()
	XORQ(i, i)
	Label("group")
	var out [2]vec
	for h, un := range []unpack{VPUNPCKLBW, VPUNPCKHBW} {
		c, l, r := YMM(), YMM(), YMM()
		VMOVDQU(Mem{Base: src, Index: i, Scale: 1, Disp: 1}, c)
		VMOVDQU(Mem{Base: src, Index: i, Scale: 1}, l)
		VMOVDQU(Mem{Base: src, Index: i, Scale: 1, Disp: 2}, r)
		un(l, c, l)
		un(r, c, r)
		VPMADDUBSW(weight31, l, l)
		VPMADDUBSW(weight31, r, r)
		VPADDW(one, l, l)
		VPADDW(two, r, r)
		VPSRLW(U8(2), l, l)
		VPSRLW(U8(2), r, r)
		VPSLLW(U8(8), r, r)
		VPOR(r, l, l)
		out[h] = l
	}
	storeDoubled(out, dst, i)
	last(i, n, "group")
	Label("done")
	VZEROUPPER()
	RET()
}

func h2v2() {
	eight, seven := asm.Words("upEight", 8), asm.Words("upSeven", 7)
	TEXT("h2v2Row", NOSPLIT, "func(dst, near, far *byte, n int)")
	Doc("h2v2Row makes one row of 2n samples, n >= 32; near and far point at the neighbour before the first sample.")
	dst, near, far := Load(Param("dst"), GP64()), Load(Param("near"), GP64()), Load(Param("far"), GP64())
	n := Load(Param("n"), GP64()).(GPVirtual)
	i := GP64()
	XORQ(i, i)
	Label("group")
	var out [2]vec
	for h, un := range []unpack{VPUNPCKLBW, VPUNPCKHBW} {
		sum := func(disp int) vec { // 3*near + far
			a, b := YMM(), YMM()
			VMOVDQU(Mem{Base: near, Index: i, Scale: 1, Disp: disp}, a)
			VMOVDQU(Mem{Base: far, Index: i, Scale: 1, Disp: disp}, b)
			un(b, a, a)
			VPMADDUBSW(weight31, a, a)
			return a
		}
		c, l, r := sum(1), sum(0), sum(2)
		t := YMM()
		VPADDW(c, c, t)
		VPADDW(c, t, t)
		VPADDW(t, l, l)
		VPADDW(t, r, r)
		VPADDW(eight, l, l)
		VPADDW(seven, r, r)
		VPSRLW(U8(4), l, l)
		VPSRLW(U8(4), r, r)
		VPSLLW(U8(8), r, r)
		VPOR(r, l, l)
		out[h] = l
	}
	storeDoubled(out, dst, i)
	last(i, n, "group")
	Label("done")
	VZEROUPPER()
	RET()
}

// storeDoubled writes 64 bytes at dst+2i: out[0] holds samples 0-7 and 16-23, out[1] the others.
func storeDoubled(out [2]vec, dst Register, i Register) {
	a, b := YMM(), YMM()
	VINSERTI128(U8(1), out[1].AsX(), out[0], a)
	VPERM2I128(U8(0x31), out[1], out[0], b)
	VMOVDQU(a, Mem{Base: dst, Index: i, Scale: 2})
	VMOVDQU(b, Mem{Base: dst, Index: i, Scale: 2, Disp: 32})
}

func h1v2() {
	TEXT("h1v2Row", NOSPLIT, "func(dst, near, far *byte, n int, bias uint16)")
	Doc("h1v2Row makes one row of n >= 32 samples.")
	dst, near, far := Load(Param("dst"), GP64()), Load(Param("near"), GP64()), Load(Param("far"), GP64())
	n := Load(Param("n"), GP64()).(GPVirtual)
	b16 := GP32()
	Load(Param("bias"), b16.As16())
	x, bias := XMM(), YMM()
	VMOVD(b16, x)
	VPBROADCASTW(x, bias)
	i := GP64()
	XORQ(i, i)
	Label("group")
	a, b, l := YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: near, Index: i, Scale: 1}, a)
	VMOVDQU(Mem{Base: far, Index: i, Scale: 1}, b)
	VPUNPCKLBW(b, a, l)
	VPUNPCKHBW(b, a, a)
	for _, v := range []vec{l, a} {
		VPMADDUBSW(weight31, v, v)
		VPADDW(bias, v, v)
		VPSRLW(U8(2), v, v)
	}
	VPACKUSWB(a, l, l)
	VMOVDQU(l, Mem{Base: dst, Index: i, Scale: 1})
	last(i, n, "group")
	Label("done")
	VZEROUPPER()
	RET()
}
