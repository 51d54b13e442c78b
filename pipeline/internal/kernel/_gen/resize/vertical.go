package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// vertical makes as many samples at a time as a vector has bytes. The bytes of two rows are interleaved: so VPMADDUBSW sums a tap pair's products
// with the upper parts of the weights in words, and, once widened, VPMADDWD with the lower 16 bits in dwords. The sum
// of both is upper<<16 + lower modulo 2³², so its upper word is upper + lower>>16 modulo 2¹⁶. The last samples of a
// row overlap the ones before.
func vertical() {
	name, least := "resizeVerticalAVX2", 16*asm.Lanes
	if asm.Lanes == 4 {
		name = "resizeVerticalAVX512"
	}
	TEXT(name, NOSPLIT, "func(dst, src *byte, stride int, weights *int32, taps, n int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s makes n ≥ %d samples of one row from as many rows as there are taps, stride apart.", name, least),
		"weights holds two dwords per pair of taps, see Vertical.pack. With an odd number of taps the last pair's second weight is",
		"not looked at.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	stride, weights := Load(Param("stride"), GP64()), Load(Param("weights"), GP64())
	taps, left := Load(Param("taps"), GP64()), Load(Param("n"), GP64())
	pairs := GP64()
	MOVQ(taps, pairs)
	SHRQ(U8(1), pairs)
	zero, half := asm.Vector(), broadcast(0x00200020) // 1<<21, as upper words
	asm.Zero(zero)

	Label("block")
	upper, lower := vectors(2), vectors(4)
	for i := range upper {
		asm.Move(half, upper[i])
	}
	for i := range lower {
		asm.Zero(lower[i])
	}
	p, w, n := GP64(), GP64(), GP64()
	MOVQ(src, p)
	MOVQ(weights, w)
	MOVQ(pairs, n)
	TESTQ(n, n)
	JZ(LabelRef("single"))

	Label("pair")
	verticalPair(p, w, upper, lower, zero, func(unpack func(...Op), a, ab VecVirtual) {
		unpack(Mem{Base: p, Index: stride, Scale: 1}, a, ab)
	})
	LEAQ(Mem{Base: p, Index: stride, Scale: 2}, p)
	ADDQ(U8(8), w)
	DECQ(n)
	JNZ(LabelRef("pair"))

	Label("single")
	TESTQ(U32(1), taps)
	JZ(LabelRef("store"))
	verticalPair(p, w, upper, lower, zero, func(unpack func(...Op), a, ab VecVirtual) {
		unpack(zero, a, ab)
	})

	Label("store")
	for i := range lower {
		VPSRAD(U8(16), lower[i], lower[i])
	}
	for i := range upper {
		VPACKSSDW(lower[2*i+1], lower[2*i], lower[2*i])
		VPADDW(lower[2*i], upper[i], upper[i])
		VPSRAW(U8(weightBits-16), upper[i], upper[i])
	}
	VPACKUSWB(upper[1], upper[0], upper[0])
	asm.Move(upper[0], Mem{Base: dst})
	nextBlock(left, 16*asm.Lanes, 1, dst, src)
	VZEROUPPER()
	RET()
}

// verticalPair adds one pair of taps. second(unpack, a, ab) interleaves a with the second row.
func verticalPair(p, w Register, upper, lower []VecVirtual, zero VecVirtual, second func(unpack func(...Op), a, ab VecVirtual)) {
	a, wUpper, wLower, t := asm.Vector(), asm.Vector(), asm.Vector(), asm.Vector()
	VPBROADCASTD(Mem{Base: w}, wUpper)
	VPBROADCASTD(Mem{Base: w, Disp: 4}, wLower)
	asm.Move(Mem{Base: p}, a)
	bytesOf := []func(...Op){VPUNPCKLBW, VPUNPCKHBW}
	for i, unpack := range bytesOf {
		ab := asm.Vector()
		second(unpack, a, ab)
		VPMADDUBSW(wUpper, ab, t)
		VPADDW(t, upper[i], upper[i])
		for j, widen := range bytesOf {
			s := asm.Vector()
			widen(zero, ab, s)
			addProducts(wLower, s, lower[2*i+j])
		}
	}
}

// addProducts adds to sum's dwords the products of words of b and a, which it may change.
func addProducts(b Op, a, sum VecVirtual) {
	if asm.Lanes == 4 {
		asm.AddProducts(b, a, sum)
		return
	}
	VPMADDWD(b, a, a)
	VPADDD(a, sum, sum)
}

// nextBlock goes to label block with the next items, moved back so that they end with the row; it falls through after
// the last. A block has so many items of size bytes, which lie at the pointers.
func nextBlock(left Register, items, size int, pointers ...Register) {
	SUBQ(U8(items), left)
	JZ(LabelRef("done"))
	step := GP64()
	MOVQ(U32(items), step)
	CMPQ(left, step)
	CMOVQLT(left, step)
	for _, p := range pointers {
		if size == 1 {
			ADDQ(step, p)
		} else {
			LEAQ(Mem{Base: p, Index: step, Scale: uint8(size)}, p)
		}
	}
	CMPQ(left, U8(items))
	JGE(LabelRef("block"))
	MOVQ(U32(items), left)
	JMP(LabelRef("block"))
	Label("done")
}
