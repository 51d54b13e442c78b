package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Eight pairs are two vectors in memory, first and second fields by turns. In registers all first fields are one vector
// and all second ones another, in this order.
var order = []int{0, 1, 4, 5, 2, 3, 6, 7}

func pairs() {
	numbers := GLOBL("pairNumbers", 24) // RODATA | NOPTR
	for i, n := range order {
		DATA(4*i, U32(uint32(n)))
	}
	TEXT("setPairs", NOSPLIT, "func(entries *uint32, pairs *uint32)")
	Pragma("noescape")
	Doc("setPairs is what acTable.setSingles and acTable.addSeconds do.")
	entries, p, at, end := Load(Param("entries"), GP64()), Load(Param("pairs"), GP64()), GP64(), GP64()
	low, top, most, inside := dwords(255), dwords(acBits), dwords(endOfBlock-1), dwords(1<<acBits-1)
	number, eight := YMM(), dwords(8)
	VMOVDQU(numbers, number)
	MOVQ(entries, at)
	LEAQ(Mem{Base: entries, Disp: 4 << acBits}, end)
	Label("pair")
	e, l, v, one := YMM(), YMM(), YMM(), YMM()
	VPERMQ(U8(0xd8), Mem{Base: at}, e) // by pairs, as order has them
	VPAND(low, e, l)
	value32(number, e, v)
	VPSUBD(l, top, one)
	rest, n, two := YMM(), YMM(), YMM()
	VPSLLVD(l, number, rest)
	VPAND(inside, rest, rest)
	next := gather(entries, rest, 4, 0)
	VPAND(low, next, n)
	VPSUBD(n, one, two)
	notNegative(one, less1(l))
	move := YMM()
	VPSRLD(U8(24), e, move)
	VPSUBD(move, most, move)
	notNegative(two, less1(n), move)
	VPAND(one, two, two)
	VPAND(two, n, n)
	VPADDD(n, l, l)
	putPairs(p, e, next, l, v, secondValue(rest, next, v, two), one, two)
	ADDQ(U8(32), at)
	ADDQ(U8(64), p)
	VPADDD(eight, number, number)
	CMPQ(at, end)
	JNE(LabelRef("pair"))
	VZEROUPPER()
	RET()
}

// secondValue is the second value where there is one, else v.
func secondValue(rest, next, v, two reg.VecVirtual) reg.VecVirtual {
	w := YMM()
	value32(rest, next, w)
	VPBLENDVB(two, w, v, w)
	return w
}

func putPairs(p reg.Register, e, next, l, v, w, one, two reg.VecVirtual) {
	first, second, t := YMM(), YMM(), dwords(pairShift)
	VPSUBD(l, t, first)
	more := YMM()
	VPSRLD(U8(24), next, more)
	VPAND(two, more, more)
	VPSRLD(U8(24), e, t)
	VPADDD(more, t, t)
	VPSLLD(U8(8), t, t)
	VPOR(t, first, first)
	VPSLLD(U8(16), v, v)
	VPOR(v, first, first)
	VPAND(one, first, first)
	VPXOR(t, t, t)
	VPSUBD(more, t, second)
	VPSLLD(U8(24), second, second)
	VPSRLD(U8(24), second, second)
	VPSLLD(U8(8), l, l)
	VPOR(l, second, second)
	VPSLLD(U8(16), w, w)
	VPOR(w, second, second)
	VPBLENDVB(one, second, e, second)
	put(p, first, second)
}

// value32 is value for the bits of numbers.
func value32(number, e, v reg.VecVirtual) {
	x, sign, shift := YMM(), YMM(), YMM()
	byteOf(e, 1, shift)
	VPSLLD(U8(32-acBits), number, x)
	VPSLLVD(shift, x, x)
	VPSRAD(U8(31), x, sign)
	ones := YMM()
	VPCMPEQD(ones, ones, ones)
	VPXOR(ones, sign, sign)
	VPXOR(sign, x, x)
	VPSRLD(U8(1), x, x)
	byteOf(e, 2, shift)
	VPSUBD(dwords(32), shift, shift) // it counts from 63
	VPSRLVD(shift, x, x)
	VPXOR(sign, x, x)
	VPSUBD(sign, x, v)
}

func put(at reg.Register, first, second reg.VecVirtual) {
	a := YMM()
	VPUNPCKLDQ(second, first, a)
	VMOVDQU(a, Mem{Base: at})
	VPUNPCKHDQ(second, first, a)
	VMOVDQU(a, Mem{Base: at, Disp: 32})
}

// gather is the dwords at `at` of the elements of an array, whose size is scale.
func gather(p reg.Register, elements reg.VecVirtual, scale uint8, at int) reg.VecVirtual {
	v, all := YMM(), YMM()
	VPXOR(v, v, v)
	VPCMPEQD(all, all, all)
	VPGATHERDD(all, Mem{Base: p, Index: elements, Scale: scale, Disp: at}, v)
	return v
}

// byteOf is a byte of each dword.
func byteOf(v reg.VecVirtual, i int, to reg.VecVirtual) {
	VPSLLD(U8(24-8*i), v, to)
	VPSRLD(U8(24), to, to)
}

func less1(v reg.VecVirtual) reg.VecVirtual {
	one := YMM()
	VPCMPEQD(one, one, one)
	VPADDD(one, v, one)
	return one
}

// notNegative makes v all ones where neither it nor others are negative, else zero.
func notNegative(v reg.VecVirtual, others ...reg.VecVirtual) {
	for _, o := range others {
		VPOR(o, v, v)
	}
	least := YMM()
	VPCMPEQD(least, least, least)
	VPCMPGTD(least, v, v)
}

// dwords is x in every dword.
func dwords(x uint32) reg.VecVirtual {
	r, low, v := GP32(), XMM(), YMM()
	MOVL(U32(x), r)
	VMOVD(r, low)
	VPBROADCASTD(low, v)
	return v
}
