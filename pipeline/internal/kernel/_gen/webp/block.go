package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// transform adds the inverse transform of a block (section 14.4), each row of four words in half a register.
func transform() {
	cosine, sine, four := asm.Words("blockCosine", 20091), asm.Words("blockSine", 35468-65536), asm.Words("block4", 4)
	TEXT("addBlock", NOSPLIT, "func(dst *byte, stride int, in *[16]int16)")
	Doc("addBlock adds the inverse transform of 16 coefficients to 4×4 pixels. Sums have 16 bits.")
	Pragma("noescape")
	dst, stride, in := asm.Pointer("dst"), asm.Pointer("stride"), asm.Pointer("in")
	r := xmms(4)
	for k := range r {
		VMOVQ(Mem{Base: in, Disp: 8 * k}, r[k])
	}
	pass := func(r []VecVirtual) []VecVirtual {
		a, b, s, t, u := XMM(), XMM(), XMM(), XMM(), XMM()
		VPADDW(r[2], r[0], a)
		VPSUBW(r[2], r[0], b)
		VPMULHW(sine, r[1], s)
		VPADDW(r[1], s, s)
		VPMULHW(cosine, r[3], u)
		VPADDW(r[3], u, u)
		VPSUBW(u, s, s)
		VPMULHW(cosine, r[1], t)
		VPADDW(r[1], t, t)
		VPMULHW(sine, r[3], u)
		VPADDW(r[3], u, u)
		VPADDW(u, t, t)
		out := xmms(4)
		VPADDW(t, a, out[0])
		VPADDW(s, b, out[1])
		VPSUBW(s, b, out[2])
		VPSUBW(t, a, out[3])
		return out
	}
	r = turned(pass(r))
	VPADDW(four, r[0], r[0])
	r = pass(r)
	for k := range r {
		VPSRAW(U8(3), r[k], r[k])
	}
	for _, v := range turned(r) {
		x, low := XMM(), GP32()
		MOVL(Mem{Base: dst}, low)
		VMOVD(low, x)
		VPMOVZXBW(x, x)
		VPADDW(v, x, x)
		VPACKUSWB(x, x, x)
		VMOVD(x, low)
		MOVL(low, Mem{Base: dst})
		ADDQ(stride, dst)
	}
	RET()
}

// turned makes rows of columns, of four rows of four words.
func turned(r []VecVirtual) []VecVirtual {
	a, b := XMM(), XMM()
	VPUNPCKLWD(r[1], r[0], a)
	VPUNPCKLWD(r[3], r[2], b)
	out := xmms(4)
	VPUNPCKLDQ(b, a, out[0])
	VPUNPCKHDQ(b, a, out[2])
	VPSRLDQ(U8(8), out[0], out[1])
	VPSRLDQ(U8(8), out[2], out[3])
	return out
}
