package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func triples() {
	numbers := GLOBL(wide("tripleNumbers"), 24) // RODATA | NOPTR
	for i := range 8 {
		DATA(4*i, U32(uint32(i)))
	}
	TEXT(wide("setTriples"), NOSPLIT, "func(entries *uint32, triples *uint32)")
	Pragma("noescape")
	Doc(wide("setTriples") + " is what acTable.setTriples does for look-ups of so many bits.")
	entries, triples, at, end := Load(Param("entries"), GP64()), Load(Param("triples"), GP64()), GP64(), GP64()
	low, inside, top, most := dwords(255), dwords(1<<width-1), dwords(uint32(width)), dwords(endOfBlock-1)
	number, eight, shift := YMM(), dwords(8), dwords(uint32(tripleShift()))
	VMOVDQU(numbers, number)
	MOVQ(entries, at)
	LEAQ(Mem{Base: entries, Disp: 4 << width}, end)
	Label("triple")
	e, l, move := YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: at}, e)
	VPAND(low, e, l)
	VPSRLD(U8(24), e, move)
	for range 2 {
		next := YMM()
		VPSLLVD(l, number, next)
		VPAND(inside, next, next)
		next = gather(entries, next, 4, 0)
		code, fits, going := YMM(), YMM(), YMM()
		byteOf(next, 1, code)
		VPSUBD(l, top, fits)
		VPSUBD(code, fits, fits)
		VPSUBD(move, most, going)
		notNegative(fits, less1(code), going)
		VPAND(fits, next, next)
		VPSRLD(U8(24), next, code)
		VPADDD(code, move, move)
		VPAND(low, next, next)
		VPADDD(next, l, l)
	}
	putTriple(l, move, shift, triples)
	ADDQ(U8(32), at)
	ADDQ(U8(32), triples)
	VPADDD(eight, number, number)
	CMPQ(at, end)
	JNE(LabelRef("triple"))
	VZEROUPPER()
	RET()
}

// putTriple stores triples, where l is 0 none.
func putTriple(l, move, shift reg.VecVirtual, to reg.Register) {
	triple, some := YMM(), less1(l)
	notNegative(some)
	VPSUBD(l, shift, triple)
	VPSLLD(U8(8), l, l)
	VPOR(l, triple, triple)
	VPSLLD(U8(16), move, move)
	VPOR(move, triple, triple)
	VPAND(some, triple, triple)
	VMOVDQU(triple, Mem{Base: to})
}

// passOver passes over all coefficients but the first and goes to label done. Where a triple goes beyond the end of the block, its first symbol is read alone.
func (l *lane) passOver(ac reg.GPVirtual, done string) {
	e, i, t, table := GP64(), GP64(), GP64(), GP64()
	LEAQ(Mem{Base: ac, Disp: acTriples}, table)
	Label("triples")
	MOVQ(l.acc, i)
	SHRQ(U8(tripleShift()), i)
	ANDL(U32(4<<width-4), i.As32())
	MOVL(Mem{Base: table, Index: i, Scale: 1}, e.As32())
	l.refill()
	Label("triple")
	for range 4 {
		MOVL(e.As32(), t.As32())
		TESTL(e.As32(), e.As32())
		JZ(LabelRef("miss"))
		SHRXQ(e, l.acc, i) // what comes behind the triple, as soon as it can be known
		ANDL(U32(4<<width-4), i.As32())
		SHRL(U8(16), t.As32())
		ADDL(t.As32(), l.k.As32())
		CMPL(l.k.As32(), U8(64))
		JCC(LabelRef("end"))
		RORXL(U8(8), e.As32(), t.As32())
		MOVL(Mem{Base: table, Index: i, Scale: 1}, e.As32())
		l.drop(t)
		l.refill()
	}
	JMP(LabelRef("triple"))
	Label("end")
	LEAL(Mem{Base: l.k, Disp: -endOfBlock}, i.As32())
	CMPL(i.As32(), U8(64))
	JCS(LabelRef("ended"))
	CMPL(l.k.As32(), U8(64))
	JNE(LabelRef("before"))
	Label("ended")
	SHRL(U8(8), e.As32())
	l.drop(e)
	JMP(LabelRef(done))
	Label("before")
	SUBL(t.As32(), l.k.As32())
	Label("miss")
	l.single(ac, e)
	l.miss("one", ac, e, done)
	JMP(LabelRef("triples"))
}
