package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// packVertical cuts four pairs of weights at a time; the last four overlap the ones before.
func packVertical() {
	const z = zero
	uppers := asm.Bytes("resizeUppers", [16]int{0, 4, 0, 4, z, z, z, z, 8, 12, 8, 12, z, z, z, z})
	lowers := asm.Bytes("resizeLowers", [16]int{z, z, z, z, 0, 1, 4, 5, z, z, z, z, 8, 9, 12, 13})
	TEXT("packVerticalAVX2", NOSPLIT, "func(packed, weights *int32, n int) (large int)")
	Pragma("noescape")
	Doc("packVerticalAVX2 is packVertical of n ≥ 8 weights, an even number. large is not 0 when they do not fit.")
	packed, weights, left := asm.Pointer("packed"), asm.Pointer("weights"), asm.Pointer("n")
	round := broadcast(1 << 15)
	upperBytes, lowerBytes, largest, most := YMM(), YMM(), YMM(), YMM()
	asm.Move(uppers, upperBytes)
	asm.Move(lowers, lowerBytes)
	asm.Zero(largest)
	asm.Zero(most)

	Label("block")
	w, u, t := YMM(), YMM(), YMM()
	asm.Move(Mem{Base: weights}, w)
	VPADDD(round, w, u)
	VPSRAD(U8(16), u, u)
	VPMAXSD(u, largest, largest)
	VPABSD(u, t)
	VPSHUFB(upperBytes, u, u)
	VPSHUFB(lowerBytes, w, w)
	VPOR(u, w, w)
	asm.Move(w, Mem{Base: packed})
	VPSHUFD(U8(0b10110001), t, u)
	VPADDD(u, t, t)
	VPMAXSD(t, most, most)
	nextBlock(left, 8, 4, packed, weights)

	VPCMPGTD(broadcast(127), largest, largest)
	VPCMPGTD(broadcast(128), most, most)
	VPOR(most, largest, largest)
	large := GP32()
	VPMOVMSKB(largest, large)
	Store(large.As64(), Return("large"))
	VZEROUPPER()
	RET()
}

// groupTaps lays out a group's four pixels at a time, in the order that horizontal's vectors have.
func groupTaps() {
	words := asm.Bytes("resizeWords", [16]int{0, 1, 4, 5, 0, 1, 4, 5, 0, 1, 4, 5, 0, 1, 4, 5})
	TEXT("groupTapsAVX2", NOSPLIT, "func(places, packed, first, weights *int32, step, stride, width, pairs int)")
	Pragma("noescape")
	Doc("groupTapsAVX2 is Horizontal.groupTaps of all groups of width ≥ 4 pixels, none of which lies behind lastPlace. first and weights",
		"are those of the pixel that comes first in a row; the next pixel's lie step and stride dwords further on.")
	places, packed := asm.Pointer("places"), asm.Pointer("packed")
	step, stride := asm.Pointer("step"), asm.Pointer("stride")
	SHLQ(U8(2), step)
	SHLQ(U8(2), stride)
	last := asm.Pointer("width")
	SUBQ(U8(4), last)
	both, low := asm.Load(words), broadcast(1<<lowBits-1)
	pixel := GP64()
	XORQ(pixel, pixel)

	Label("group")
	w, stride3 := placeGroup(places, pixel, step, stride)
	pairs := asm.Pointer("pairs")
	Label("pair")
	for v, at := range [2][2]Mem{
		{{Base: w}, {Base: w, Index: stride, Scale: 2}},
		{{Base: w, Index: stride, Scale: 1}, {Base: w, Index: stride3, Scale: 1}},
	} {
		upper, second, lower := YMM(), XMM(), YMM()
		VPBROADCASTQ(at[0], upper)
		VPBROADCASTQ(at[1], second)
		VINSERTI128(U8(1), second, upper, upper)
		VPAND(low, upper, lower)
		VPSRAD(U8(lowBits), upper, upper)
		VPSHUFB(both, upper, upper)
		VPSHUFB(both, lower, lower)
		asm.Move(upper, Mem{Base: packed, Disp: 32 * v})
		asm.Move(lower, Mem{Base: packed, Disp: 64 + 32*v})
	}
	ADDQ(U8(8), w)
	ADDQ(U32(128), packed)
	DECQ(pairs)
	JNZ(LabelRef("pair"))

	ADDQ(U8(20), places)
	asm.NextGroup(pixel, last, 4)
	VZEROUPPER()
	RET()
}

// placeGroup writes the places of the group that begins with a pixel, and returns where its weights are.
func placeGroup(places, pixel, step, stride Register) (w, stride3 GPVirtual) {
	triple := func(n Register, i int) {
		LEAL(Mem{Base: n, Index: n, Scale: 2}, n.(GP).As32())
		MOVL(n.(GP).As32(), Mem{Base: places, Disp: 4 * i})
	}
	w, stride3 = GP64(), GP64()
	at, n := GP64(), GP64()
	MOVQ(pixel, n)
	triple(n, 0)
	MOVQ(pixel, at)
	IMULQ(step, at)
	ADDQ(asm.Param("first"), at)
	for _, i := range []int{1, 3, 2, 4} {
		n := GP64()
		MOVL(Mem{Base: at}, n.As32())
		triple(n, i)
		ADDQ(step, at)
	}
	MOVQ(pixel, w)
	IMULQ(stride, w)
	ADDQ(asm.Param("weights"), w)
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	return w, stride3
}
