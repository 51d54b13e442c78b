package main

import (
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Eight pairs are two vectors in memory, first and second fields by turns. In registers all first fields are one vector
// and all second ones another, in this order.
var order = []int{0, 1, 4, 5, 2, 3, 6, 7}

func pairs() {
	numbers := GLOBL(wide("pairNumbers"), 24) // RODATA | NOPTR
	for i, n := range order {
		DATA(4*i, U32(uint32(n)))
	}
	TEXT(wide("setPairs"), NOSPLIT, "func(entries *uint32, pairs *uint32)")
	Pragma("noescape")
	Doc(wide("setPairs") + " is what acTable.setPairs does for look-ups of so many bits.")
	entries, p, at, end := Load(Param("entries"), GP64()), Load(Param("pairs"), GP64()), GP64(), GP64()
	number := YMM()
	VMOVDQU(numbers, number)
	MOVQ(entries, at)
	LEAQ(Mem{Base: entries, Disp: 4 << width}, end)
	Label("pair")
	e, l, rest := YMM(), YMM(), YMM()
	VPERMQ(U8(0xd8), Mem{Base: at}, e) // by pairs, as order has them
	byteOf(e, 0, l)
	VPSLLVD(l, number, rest)
	VPAND(dwords(1<<width-1), rest, rest)
	next := gather(entries, rest, 4, 0)
	size, known, bias := last(number, e)
	one := firstFits(l, known)
	size2, known2, bias2 := last(rest, next)
	two := secondFits(e, l, size, next, known2)
	VPAND(one, two, two)
	VPBLENDVB(two, size2, size, size)
	VPBLENDVB(two, bias2, bias, bias)
	VPAND(two, next, next)
	first := firstField(e, l, size, next)
	VPAND(one, first, first)
	second := secondField(number, e, two, next, bias)
	VPBLENDVB(one, second, e, second)
	put(p, first, second)
	ADDQ(U8(32), at)
	ADDQ(U8(64), p)
	VPADDD(dwords(8), number, number)
	CMPQ(at, end)
	JNE(LabelRef("pair"))
	VZEROUPPER()
	RET()
}

// firstFits is where a symbol of l bits, of which the look-up must have those known, is a pair's first.
func firstFits(l, known reg.VecVirtual) reg.VecVirtual {
	fits, t := dwords(uint32(width)), dwords(pairLength)
	VPSUBD(known, fits, fits)
	VPSUBD(l, t, t)
	notNegative(fits, less1(l), t)
	return fits
}

// secondFits is where next can be the second symbol behind e, a first one of l bits.
func secondFits(e, l, size, next, known reg.VecVirtual) reg.VecVirtual {
	fits, n, t := dwords(uint32(width)), YMM(), dwords(pairLength)
	VPSUBD(l, fits, fits)
	VPSUBD(known, fits, fits)
	byteOf(next, 0, n)
	VPOR(less1(n), fits, fits)
	VPSUBD(l, t, t)
	VPSUBD(n, t, t)
	VPOR(t, fits, fits)
	t = dwords(7)
	VPSUBD(size, t, t)
	VPOR(t, fits, fits)
	VPSRLD(U8(24), e, n)
	t = dwords(endOfBlock - 1)
	VPSUBD(n, t, t)
	notNegative(fits, t)
	return fits
}

// firstField is a pair's field of that name; next is 0 where there is no second symbol.
func firstField(e, l, size, next reg.VecVirtual) reg.VecVirtual {
	first, t, move := dwords(uint32(pairShift())), YMM(), YMM()
	byteOf(next, 0, t)
	VPADDD(l, t, t)
	VPSUBD(t, first, first)
	field(t, 24, first)
	field(size, 8, first)
	VPSRLD(U8(24), next, t)
	VPSRLD(U8(24), e, move)
	VPADDD(move, t, t)
	field(t, 16, first)
	return first
}

// secondField is a pair's field of that name. two says where there is a second symbol; next is 0 elsewhere.
func secondField(number, e, two, next, bias reg.VecVirtual) reg.VecVirtual {
	second, t, less := YMM(), YMM(), YMM()
	value32(number, e, second)
	VPAND(two, second, second)
	VPSLLD(U8(24), second, second)
	VPSRLD(U8(16), second, second)
	VPSRLD(U8(24), next, t)
	VPXOR(less, less, less)
	VPSUBD(t, less, less)
	byteOf(less, 0, less)
	VPOR(less, second, second)
	field(bias, 16, second)
	return second
}

// field adds v to what to has, at a bit. It uses v up.
func field(v reg.VecVirtual, bit uint8, to reg.VecVirtual) {
	VPSLLD(U8(bit), v, v)
	VPOR(v, to, to)
}

// last is package jpeg's entry.last.
func last(number, e reg.VecVirtual) (size, known, bias reg.VecVirtual) {
	known, bias, size = YMM(), YMM(), dwords(63)
	one, t := dwords(1), YMM()
	byteOf(e, 2, t)
	VPSUBD(t, size, size)
	VPSLLVD(size, one, bias)
	VPSUBD(bias, one, bias)
	VPMINUD(size, one, known)
	byteOf(e, 1, t)
	VPADDD(t, known, known)
	VPSLLD(U8(32-width), number, one)
	VPSLLVD(t, one, t)
	VPSRAD(U8(31), t, t)
	VPANDN(bias, t, bias)
	return size, known, bias
}

// value32 is value for the bits of numbers.
func value32(number, e, v reg.VecVirtual) {
	x, sign, shift := YMM(), YMM(), YMM()
	byteOf(e, 1, shift)
	VPSLLD(U8(32-width), number, x)
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
	m, ok := constants[x]
	if !ok {
		m = ConstData("dword"+strconv.Itoa(int(x)), U32(x))
		constants[x] = m
	}
	v := YMM()
	VPBROADCASTD(m, v)
	return v
}

var constants = map[uint32]Mem{} // by what they are
