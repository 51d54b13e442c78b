package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

func widen() {
	TEXT("widenBytes", NOSPLIT, "func(dst *float32, src *byte, n int)")
	Doc("widenBytes makes float32 of n bytes, 8 at a time: up to 7 more are read and written.")
	Pragma("noescape")
	dst, src, n := asm.Pointer("dst"), asm.Pointer("src"), asm.Pointer("n")
	i, v := GP64(), YMM()
	XORQ(i, i)
	Label("group")
	VPMOVZXBD(Mem{Base: src, Index: i, Scale: 1}, v)
	VCVTDQ2PS(v, v)
	VMOVUPS(v, Mem{Base: dst, Index: i, Scale: 4})
	ADDQ(U8(8), i)
	CMPQ(i, n)
	JL(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// pairSums: the two values that a tap counts are added first, and their product is added with one rounding.
func pairSums() {
	TEXT("pairSums", NOSPLIT, "func(dst, src *float32, offsets *int, taps *float32, count, n int)")
	Doc("pairSums sums n values, 32 at a time, up to 31 more: src at offsets[0] times taps[0], and for each further one of count taps the sum of",
		"src at two further offsets times the tap. Offsets count bytes.")
	Pragma("noescape")
	dst, src, offsets, taps, count := asm.Pointer("dst"), asm.Pointer("src"), asm.Pointer("offsets"), asm.Pointer("taps"), asm.Pointer("count")
	end := asm.Pointer("n")
	SHLQ(U8(2), end)
	i, at, t, first, second := GP64(), GP64(), GP64(), GP64(), GP64()
	tap := YMM()
	var sum, v [4]VecVirtual
	for k := range sum {
		sum[k], v[k] = YMM(), YMM()
	}
	XORQ(i, i)
	Label("group")
	MOVQ(Mem{Base: offsets}, first)
	ADDQ(src, first)
	VBROADCASTSS(Mem{Base: taps}, tap)
	for k := range sum {
		VMULPS(Mem{Base: first, Index: i, Scale: 1, Disp: 32 * k}, tap, sum[k])
	}
	LEAQ(Mem{Base: offsets, Disp: 8}, at)
	MOVQ(U32(1), t)
	JMP(LabelRef("more"))
	Label("tap")
	MOVQ(Mem{Base: at}, first)
	MOVQ(Mem{Base: at, Disp: 8}, second)
	ADDQ(src, first)
	ADDQ(src, second)
	VBROADCASTSS(Mem{Base: taps, Index: t, Scale: 4}, tap)
	for k := range v {
		VMOVUPS(Mem{Base: first, Index: i, Scale: 1, Disp: 32 * k}, v[k])
	}
	for k := range v {
		VADDPS(Mem{Base: second, Index: i, Scale: 1, Disp: 32 * k}, v[k], v[k])
	}
	for k := range v {
		VFMADD231PS(v[k], tap, sum[k])
	}
	ADDQ(U8(16), at)
	INCQ(t)
	Label("more")
	CMPQ(t, count)
	JL(LabelRef("tap"))
	for k := range sum {
		VMOVUPS(sum[k], Mem{Base: dst, Index: i, Scale: 1, Disp: 32 * k})
	}
	SUBQ(I32(-128), i)
	CMPQ(i, end)
	JL(LabelRef("group"))
	VZEROUPPER()
	RET()
}

func roundSums() {
	const below, above = 1, 14 // predicates of VCMPPS, false for what is no number
	TEXT("roundSums", NOSPLIT, "func(dst, near *byte, sums *float32, low, high float32, n int)")
	Doc("roundSums rounds n sums between 0 and 255, 8 at a time, up to 7 more. A bit of near, the lowest first, is set where what is cut off the sum",
		"and a half is less than low, or more than high.")
	Pragma("noescape")
	dst, near, sums, n := asm.Pointer("dst"), asm.Pointer("near"), asm.Pointer("sums"), asm.Pointer("n")
	half := YMM()
	halfOf := GLOBL("blurHalf", 24) // RODATA | NOPTR
	DATA(0, F32(0.5))
	VBROADCASTSS(halfOf, half)
	low, high := broadcast("low"), broadcast("high")
	i := GP64()
	XORQ(i, i)
	v, whole, rest, less := YMM(), YMM(), YMM(), YMM()
	bits := GP32()
	Label("group")
	VADDPS(Mem{Base: sums, Index: i, Scale: 4}, half, v)
	VCVTTPS2DQ(v, whole)
	VCVTDQ2PS(whole, rest)
	VSUBPS(rest, v, rest)
	VCMPPS(U8(below), low, rest, less)
	VCMPPS(U8(above), high, rest, rest)
	VORPS(rest, less, less)
	VMOVMSKPS(less, bits)
	MOVB(bits.As8(), Mem{Base: near})
	INCQ(near)
	x := XMM()
	VEXTRACTI128(U8(1), whole, x)
	VPACKUSDW(x, whole.AsX(), x)
	VPACKUSWB(x, x, x)
	VMOVQ(x, Mem{Base: dst, Index: i, Scale: 1})
	ADDQ(U8(8), i)
	CMPQ(i, n)
	JL(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// exactSums has eight chains of sums at once, since each waits for its last one.
func exactSums() {
	TEXT("exactSums", NOSPLIT, "func(sums *[8]float32, src *float32, rows *int, columns *[8]int, kernel *float32, w, h int)")
	Doc("exactSums sums products for 8 values, each with a kernel of w taps in each of h rows, row by row, every product added with one rounding.",
		"Value i begins columns[i] bytes behind where rows begin in src, by bytes too. Its taps are three values apart.")
	Pragma("noescape")
	src, rows, kernel, h := asm.Pointer("src"), asm.Pointer("rows"), asm.Pointer("kernel"), asm.Pointer("h")
	columns := asm.Pointer("columns")
	var at [8]GPVirtual
	var sum [8]VecVirtual
	for k := range at {
		at[k], sum[k] = GP64(), XMM()
		MOVQ(Mem{Base: columns, Disp: 8 * k}, at[k])
		VXORPS(sum[k], sum[k], sum[k])
	}
	row, left, tap := GP64(), GP64(), XMM()
	Label("row")
	MOVQ(Mem{Base: rows}, row)
	ADDQ(src, row)
	Load(Param("w"), left)
	Label("tap")
	VMOVSS(Mem{Base: kernel}, tap)
	for k := range at {
		VFMADD231SS(Mem{Base: row, Index: at[k], Scale: 1}, tap, sum[k])
	}
	ADDQ(U8(4), kernel)
	ADDQ(U8(12), row)
	DECQ(left)
	JNZ(LabelRef("tap"))
	ADDQ(U8(8), rows)
	DECQ(h)
	JNZ(LabelRef("row"))
	sums := asm.Pointer("sums")
	for k := range sum {
		VMOVSS(sum[k], Mem{Base: sums, Disp: 4 * k})
	}
	RET()
}
