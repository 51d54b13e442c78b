package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func leaps() {
	numbers := GLOBL("leapNumbers", 24) // RODATA | NOPTR
	for i := range 8 {
		DATA(4*i, U32(uint32(i)))
	}
	TEXT("setLeaps", NOSPLIT, "func(entries *uint32, leaps *uint32)")
	Pragma("noescape")
	Doc("setLeaps is what acTable.setLeaps does.")
	entries, leaps, at, end := Load(Param("entries"), GP64()), Load(Param("leaps"), GP64()), GP64(), GP64()
	low, inside, top, most := dwords(255), dwords(1<<acBits-1), dwords(acBits), dwords(endOfBlock-1)
	number, eight, shift := YMM(), dwords(8), dwords(leapShift)
	VMOVDQU(numbers, number)
	MOVQ(entries, at)
	LEAQ(Mem{Base: entries, Disp: 4 << acBits}, end)
	Label("leap")
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
	putLeap(l, move, shift, leaps)
	ADDQ(U8(32), at)
	ADDQ(U8(32), leaps)
	VPADDD(eight, number, number)
	CMPQ(at, end)
	JNE(LabelRef("leap"))
	VZEROUPPER()
	RET()
}

// putLeap stores leaps, where l is 0 none.
func putLeap(l, move, shift reg.VecVirtual, to reg.Register) {
	leap, some := YMM(), less1(l)
	notNegative(some)
	VPSUBD(l, shift, leap)
	VPSLLD(U8(8), l, l)
	VPOR(l, leap, leap)
	VPSLLD(U8(16), move, move)
	VPOR(move, leap, leap)
	VPAND(some, leap, leap)
	VMOVDQU(leap, Mem{Base: to})
}

// leap passes over all coefficients but the first and goes to label done. Where a leap goes beyond the end of the block, its first symbol is read alone.
func (l *lane) leap(ac reg.GPVirtual, done string) {
	e, i, t, table := GP64(), GP64(), GP64(), GP64()
	LEAQ(Mem{Base: ac, Disp: acLeaps}, table)
	Label("leaps")
	MOVQ(l.acc, i)
	SHRQ(U8(leapShift), i)
	ANDL(U32(4<<acBits-4), i.As32())
	MOVL(Mem{Base: table, Index: i, Scale: 1}, e.As32())
	l.refill()
	Label("leap")
	for range 4 {
		MOVL(e.As32(), t.As32())
		TESTL(e.As32(), e.As32())
		JZ(LabelRef("miss"))
		SHRXQ(e, l.acc, i) // what comes behind the leap, as soon as it can be known
		ANDL(U32(4<<acBits-4), i.As32())
		SHRL(U8(16), t.As32())
		ADDL(t.As32(), l.k.As32())
		CMPL(l.k.As32(), U8(64))
		JCC(LabelRef("end"))
		RORXL(U8(8), e.As32(), t.As32())
		MOVL(Mem{Base: table, Index: i, Scale: 1}, e.As32())
		l.drop(t)
		l.refill()
	}
	JMP(LabelRef("leap"))
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
	JMP(LabelRef("leaps"))
}
