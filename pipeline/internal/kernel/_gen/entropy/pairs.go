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
	number, eight := YMM(), dwords(8)
	singles(entries, p, at, end, numbers, number, eight)
	seconds(p, at, end, numbers, number, eight)
	VZEROUPPER()
	RET()
}

func singles(entries, p, at, end reg.Register, numbers Mem, number, eight reg.VecVirtual) {
	low, top := dwords(255), dwords(acBits)
	start(p, at, end, numbers, number)
	Label("single")
	e, l, v, fits := YMM(), YMM(), YMM(), YMM()
	VPERMQ(U8(0xd8), Mem{Base: entries}, e) // by pairs, as order has them
	VPAND(low, e, l)
	value32(number, e, v)
	VPSLLD(U8(16), v, v)
	VPSUBD(l, top, fits)
	notNegative(fits, less1(l))
	first, second := YMM(), YMM()
	VPSRLD(U8(24), e, first)
	VPSLLD(U8(8), first, first)
	VPOR(l, first, first)
	VPOR(v, first, first)
	VPAND(fits, first, first)
	VPSLLD(U8(8), l, second)
	VPOR(v, second, second)
	VPAND(fits, second, second)
	put(at, first, second)
	ADDQ(U8(32), entries)
	step(at, end, number, eight, "single")
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

func seconds(p, at, end reg.Register, numbers Mem, number, eight reg.VecVirtual) {
	low, top, most, inside := dwords(255), dwords(acBits), dwords(endOfBlock-1), dwords(1<<acBits-1)
	start(p, at, end, numbers, number)
	Label("second")
	first, second := get(at)
	l, move, rest := YMM(), YMM(), YMM()
	VPAND(low, first, l)
	byteOf(first, 1, move)
	VPSLLVD(l, number, rest)
	VPAND(inside, rest, rest)
	nextFirst, nextSecond := gather(p, rest, 8, 0), gather(p, rest, 8, 4)
	n, fits := YMM(), YMM()
	byteOf(nextSecond, 1, n)
	VPSUBD(l, top, fits)
	VPSUBD(n, fits, fits)
	VPSUBD(move, most, move)
	notNegative(fits, less1(n), move)
	VPAND(fits, n, n)
	VPADDD(n, first, first)
	both := YMM()
	byteOf(nextFirst, 1, both)
	VPSLLD(U8(8), l, l)
	VPOR(l, both, both)
	VPBLENDW(U8(0xaa), nextFirst, both, both) // the value
	VPBLENDVB(fits, both, second, second)
	put(at, first, second)
	step(at, end, number, eight, "second")
}

// start and step walk over all pairs, number has theirs.
func start(p, at, end reg.Register, numbers Mem, number reg.VecVirtual) {
	MOVQ(p, at)
	LEAQ(Mem{Base: p, Disp: 8 << acBits}, end)
	VMOVDQU(numbers, number)
}

func step(at, end reg.Register, number, eight reg.VecVirtual, again string) {
	VPADDD(eight, number, number)
	ADDQ(U8(64), at)
	CMPQ(at, end)
	JNE(LabelRef(again))
}

func get(at reg.Register) (first, second reg.VecVirtual) {
	a := YMM()
	first, second = YMM(), YMM()
	VMOVUPS(Mem{Base: at}, a)
	VSHUFPS(U8(0x88), Mem{Base: at, Disp: 32}, a, first)
	VSHUFPS(U8(0xdd), Mem{Base: at, Disp: 32}, a, second)
	return first, second
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
