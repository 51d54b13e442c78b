package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// fourTriangles are the weights of four outputs, each in a lane of doubles: those of one source pixel after the other.
type fourTriangles struct {
	half, one, inverse VecVirtual
	absolute           Mem
	center, place, end VecVirtual // place is the source pixel whose weights come next, end where they end
}

// triangle makes the taps of four outputs at a time; the last four overlap the ones before. Every double is what the
// scalar loop makes, by the same operations in the same order: no product is fused with a sum.
func triangle() {
	unit, ones := asm.Doubles("resizeUnit", 1<<weightBits), asm.Dwords("resizeOne", 1)
	lanes := asm.Lane("resizeFour", 0, 1, 2, 3)
	absolute := asm.Doubles("resizeAbsolute", math.Float64frombits(math.MaxInt64))
	TEXT("triangleAVX2", NOSPLIT,
		"func(first, count, weights *int32, stride, n, from, in, lo int, scale, reach, inverse float64) (end, longest, zeros int32)")
	Pragma("noescape")
	Doc("triangleAVX2 makes the taps of n ≥ 4 outputs, see Triangle.Weigh, but that first weights may be 0, in which case zeros is not 0;",
		"first is relative to lo. Of the weights behind count it writes one at most. in is at most 1<<28.")
	first, count, weights := asm.Pointer("first"), asm.Pointer("count"), asm.Pointer("weights")
	stride, stride3 := asm.Pointer("stride"), GP64()
	SHLQ(U8(2), stride)
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	rows := [4]Mem{{}, {Index: stride, Scale: 1}, {Index: stride, Scale: 2}, {Index: stride3, Scale: 1}}
	four := fourTriangles{half: YMM(), one: YMM(), inverse: YMM(), absolute: absolute}
	asm.Move(asm.Doubles("resizeHalf", 0.5), four.half)
	asm.Move(asm.Doubles("resizeUnity", 1), four.one)
	VBROADCASTSD(param("inverse"), four.inverse)
	ends, longest, zeros := XMM(), XMM(), GP32()
	VPXOR(ends, ends, ends)
	VPXOR(longest, longest, longest)
	XORL(zeros, zeros)
	output, left := asm.Pointer("from"), asm.Pointer("n")
	SUBQ(U8(4), left)

	Label("outputs")
	begin, taps := four.begin(output, lanes)
	sum := four.sum(begin, taps)
	used := four.quantise(begin, taps, weights, rows, sum, unit, ones)
	VMOVDQU(used, Mem{Base: count})
	VPMAXSD(used, longest, longest)
	VPADDD(begin, used, used)
	VPMAXSD(used, ends, ends)
	VPBROADCASTD(param("lo"), used)
	VPSUBD(used, begin, begin)
	VMOVDQU(begin, Mem{Base: first})
	noteZeros(weights, rows, zeros)

	TESTQ(left, left)
	JZ(LabelRef("done"))
	step := GP64()
	MOVQ(U32(4), step)
	CMPQ(left, step)
	CMOVQLT(left, step)
	SUBQ(step, left)
	ADDQ(step, output)
	LEAQ(Mem{Base: first, Index: step, Scale: 4}, first)
	LEAQ(Mem{Base: count, Index: step, Scale: 4}, count)
	IMULQ(stride, step)
	ADDQ(step, weights)
	JMP(LabelRef("outputs"))
	Label("done")
	Store(largestOf(ends), Return("end"))
	Store(largestOf(longest), Return("longest"))
	Store(zeros, Return("zeros"))
	VZEROUPPER()
	RET()
}

// begin begins the four outputs from output on; taps is how many the longest has.
func (t *fourTriangles) begin(output Register, lanes Mem) (begin VecVirtual, taps Register) {
	begin, t.center, t.end = XMM(), YMM(), YMM()
	n, x, reach := XMM(), YMM(), YMM()
	VMOVD(output.(GP).As32(), n)
	VPBROADCASTD(n, n)
	VPADDD(lanes, n, n)
	VCVTDQ2PD(n, x)
	VADDPD(t.half, x, x)
	VBROADCASTSD(param("scale"), t.center)
	VMULPD(t.center, x, t.center)
	VBROADCASTSD(param("reach"), reach)
	VSUBPD(reach, t.center, x)
	VADDPD(t.half, x, x)
	VCVTTPD2DQY(x, begin)
	VPXOR(n, n, n)
	VPMAXSD(n, begin, begin)
	VADDPD(reach, t.center, x)
	VADDPD(t.half, x, x)
	end := XMM()
	VCVTTPD2DQY(x, end)
	VPBROADCASTD(param("in"), n)
	VPMINSD(n, end, end)
	VCVTDQ2PD(end, t.end)
	VPSUBD(begin, end, end)
	return begin, largestOf(end)
}

// next makes the next weights, not yet divided, and 0 where an output has no more.
func (t *fourTriangles) next() (x VecVirtual) {
	x = YMM()
	mask := YMM()
	VSUBPD(t.center, t.place, x)
	VADDPD(t.half, x, x)
	VMULPD(t.inverse, x, x)
	VANDPD(t.absolute, x, x)
	VSUBPD(x, t.one, x)
	VXORPD(mask, mask, mask)
	VMAXPD(mask, x, x)
	VCMPPD(U8(1), t.end, t.place, mask) // place < end
	VANDPD(mask, x, x)
	VADDPD(t.one, t.place, t.place)
	return x
}

// sum adds the weights up, each to those before.
func (t *fourTriangles) sum(begin VecVirtual, taps Register) (sum VecVirtual) {
	sum, t.place = YMM(), YMM()
	VCVTDQ2PD(begin, t.place)
	VXORPD(sum, sum, sum)
	n := GP32()
	MOVL(taps, n)
	Label("sum")
	VADDPD(t.next(), sum, sum)
	DECL(n)
	JNZ(LabelRef("sum"))
	return sum
}

// quantise writes the weights in twos; used is how many an output has without the zeros at its end.
func (t *fourTriangles) quantise(begin VecVirtual, taps Register, weights Register, rows [4]Mem, sum VecVirtual, unit, ones Mem) (used VecVirtual) {
	used = XMM()
	number := XMM()
	VPXOR(used, used, used)
	VPXOR(number, number, number)
	VCVTDQ2PD(begin, t.place)
	w := GP64()
	MOVQ(weights, w)
	Label("twoTaps")
	var q [2]VecVirtual
	for i := range q {
		x, here := t.next(), XMM()
		q[i] = XMM()
		VDIVPD(sum, x, x)
		VMULPD(unit, x, x)
		VADDPD(t.half, x, x)
		VCVTTPD2DQY(x, q[i])
		VPADDD(ones, number, number)
		VPSIGND(q[i], number, here) // 0 where the weight is
		VPMAXSD(here, used, used)
	}
	high := XMM()
	VPUNPCKHDQ(q[1], q[0], high)
	VPUNPCKLDQ(q[1], q[0], q[0])
	for i, v := range []VecVirtual{q[0], high} {
		for j, store := range []func(...Op){func(o ...Op) { VMOVQ(o[0], o[1]) }, VMOVHPS} {
			m := rows[2*i+j]
			m.Base = w
			store(v, m)
		}
	}
	ADDQ(U8(8), w)
	SUBL(U8(2), taps)
	JG(LabelRef("twoTaps"))
	return used
}

// noteZeros makes zeros other than 0 when an output's first weight is 0.
func noteZeros(weights Register, rows [4]Mem, zeros Register) {
	heads, none, mask := XMM(), XMM(), GP32()
	for i, m := range rows {
		if m.Base = weights; i == 0 {
			VMOVD(m, heads)
		} else {
			VPINSRD(U8(i), m, heads, heads)
		}
	}
	VPXOR(none, none, none)
	VPCMPEQD(none, heads, heads)
	VPMOVMSKB(heads, mask)
	ORL(mask, zeros)
}

// largestOf is the largest dword of v, which is left as it is.
func largestOf(v VecVirtual) Register {
	x, y, n := XMM(), XMM(), GP32()
	VPSHUFD(U8(0b01001110), v, x)
	VPMAXSD(v, x, x)
	VPSHUFD(U8(0b10110001), x, y)
	VPMAXSD(x, y, y)
	VMOVD(y, n)
	return n
}
