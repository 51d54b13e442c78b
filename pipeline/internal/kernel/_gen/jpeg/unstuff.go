package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// unstuff copies 32 bytes at a time and looks at a 0xFF among them: followed by 0 it is data, else the copy ends. It
// also ends when fewer than 33 bytes are left; the caller goes on from there.
func unstuff() {
	TEXT("unstuffRun", NOSPLIT, "func(dst, src *byte, n int) (written, read int)")
	Doc("unstuffRun copies n bytes without the zeros that follow 0xFF, up to a marker or the last bytes.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	w, i, limit, t := GP64(), GP64(), GP64(), GP64()
	XORQ(w, w)
	XORQ(i, i)
	LEAQ(Mem{Base: n, Disp: -33}, limit)
	ff := YMM()
	VPCMPEQB(ff, ff, ff)

	Label("group")
	CMPQ(i, limit)
	JG(LabelRef("done"))
	v, m := YMM(), YMM()
	VMOVDQU(Mem{Base: src, Index: i, Scale: 1}, v)
	VMOVDQU(v, Mem{Base: dst, Index: w, Scale: 1})
	VPCMPEQB(ff, v, m)
	bits := GP32()
	VPMOVMSKB(m, bits)
	TESTL(bits, bits)
	JNZ(LabelRef("found"))
	ADDQ(U8(32), i)
	ADDQ(U8(32), w)
	JMP(LabelRef("group"))

	Label("found")
	BSFL(bits, t.As32())
	ADDQ(t, i)
	ADDQ(t, w)
	CMPB(Mem{Base: src, Index: i, Scale: 1, Disp: 1}, U8(0))
	JNE(LabelRef("done"))
	ADDQ(U8(2), i)
	INCQ(w)
	JMP(LabelRef("group"))

	Label("done")
	Store(w, ReturnIndex(0))
	Store(i, ReturnIndex(1))
	VZEROUPPER()
	RET()
}
