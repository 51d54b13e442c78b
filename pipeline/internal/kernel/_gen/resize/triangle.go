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
	unit, ones         Mem
	center, place, end VecVirtual // place is the source pixel whose weights come next, end where they end
	total              VecVirtual
}

// triangle makes the taps of four outputs at a time; the last four overlap the ones before. Every double is what the
// scalar loop makes, by the same operations in the same order: no product is fused with a sum.
func triangle() {
	lanes := asm.Lane("resizeFour", 0, 1, 2, 3)
	absolute, unit := asm.Doubles("resizeAbsolute", math.Float64frombits(math.MaxInt64)), asm.Doubles("resizeUnit", 1<<weightBits)
	ones := asm.Dwords("resizeOne", 1)
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
	four := fourTriangles{half: YMM(), one: YMM(), inverse: YMM(), absolute: absolute, unit: unit, ones: ones}
	asm.Move(asm.Doubles("resizeHalf", 0.5), four.half)
	asm.Move(asm.Doubles("resizeUnity", 1), four.one)
	VBROADCASTSD(asm.Param("inverse"), four.inverse)
	ends, longest, zeros := XMM(), XMM(), XMM()
	for _, v := range []VecVirtual{ends, longest, zeros} {
		VPXOR(v, v, v)
	}
	output, left := asm.Pointer("from"), asm.Pointer("n")
	SUBQ(U8(4), left)

	Label("outputs")
	begin, taps := four.begin(output, lanes)
	two := four.sum(begin, taps)
	used := four.quantise(two, taps, weights, rows, zeros)
	VMOVDQU(used, Mem{Base: count})
	VPMAXSD(used, longest, longest)
	VPADDD(begin, used, used)
	VPMAXSD(used, ends, ends)
	VPBROADCASTD(asm.Param("lo"), used)
	VPSUBD(used, begin, begin)
	VMOVDQU(begin, Mem{Base: first})

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
	mask := GP32()
	VPMOVMSKB(zeros, mask)
	Store(mask, Return("zeros"))
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
	VBROADCASTSD(asm.Param("scale"), t.center)
	VMULPD(t.center, x, t.center)
	VBROADCASTSD(asm.Param("reach"), reach)
	VSUBPD(reach, t.center, x)
	VADDPD(t.half, x, x)
	VCVTTPD2DQY(x, begin)
	VPXOR(n, n, n)
	VPMAXSD(n, begin, begin)
	VADDPD(reach, t.center, x)
	VADDPD(t.half, x, x)
	end := XMM()
	VCVTTPD2DQY(x, end)
	VPBROADCASTD(asm.Param("in"), n)
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

// sum adds the weights up, each to those before, and returns the first two.
func (t *fourTriangles) sum(begin VecVirtual, taps Register) (two [2]VecVirtual) {
	t.total, t.place = YMM(), YMM()
	VCVTDQ2PD(begin, t.place)
	two = [2]VecVirtual{t.next(), t.next()}
	VADDPD(two[1], two[0], t.total)
	n := GP32()
	MOVL(taps, n)
	SUBL(U8(2), n)
	JLE(LabelRef("summed"))
	Label("sum")
	VADDPD(t.next(), t.total, t.total)
	DECL(n)
	JNZ(LabelRef("sum"))
	VCVTDQ2PD(begin, t.place)
	VADDPD(t.one, t.place, t.place)
	VADDPD(t.one, t.place, t.place)
	Label("summed")
	return two
}

// quantise writes the weights in twos; used is how many an output has without the zeros at its end. Where the first of
// all is 0, it makes zeros all ones.
func (t *fourTriangles) quantise(two [2]VecVirtual, taps, weights Register, rows [4]Mem, zeros VecVirtual) (used VecVirtual) {
	used = XMM()
	number, none, w := XMM(), XMM(), GP64()
	VPXOR(used, used, used)
	VPXOR(number, number, number)
	MOVQ(weights, w)
	first := t.write(two, w, rows, number, used)
	VPXOR(none, none, none)
	VPCMPEQD(none, first, first)
	VPOR(first, zeros, zeros)
	Label("twoTaps")
	SUBL(U8(2), taps)
	JLE(LabelRef("written"))
	ADDQ(U8(8), w)
	t.write([2]VecVirtual{t.next(), t.next()}, w, rows, number, used)
	JMP(LabelRef("twoTaps"))
	Label("written")
	return used
}

// write writes two weights of each output and counts them up in number. It returns the first.
func (t *fourTriangles) write(two [2]VecVirtual, w Register, rows [4]Mem, number, used VecVirtual) (first VecVirtual) {
	var q [2]VecVirtual
	for i, x := range two {
		here := XMM()
		q[i] = XMM()
		VDIVPD(t.total, x, x)
		VMULPD(t.unit, x, x)
		VADDPD(t.half, x, x)
		VCVTTPD2DQY(x, q[i])
		VPADDD(t.ones, number, number)
		VPSIGND(q[i], number, here) // 0 where the weight is
		VPMAXSD(here, used, used)
	}
	low, high := XMM(), XMM()
	VPUNPCKLDQ(q[1], q[0], low)
	VPUNPCKHDQ(q[1], q[0], high)
	for i, v := range []VecVirtual{low, high} {
		for j, store := range []func(...Op){func(o ...Op) { VMOVQ(o[0], o[1]) }, VMOVHPS} {
			m := rows[2*i+j]
			m.Base = w
			store(v, m)
		}
	}
	return q[0]
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
