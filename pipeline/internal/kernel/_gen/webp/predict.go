package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// predict fills a block with means of the pixels around it: all means are made, and a shuffle takes those that the direction names.
func predict() {
	one, low := bytes("predict1", 1), bytes("predictLow", 0x70)
	TEXT("predictMeans", NOSPLIT, "func(dst *byte, stride int, direction *[16]uint8)")
	Doc("predictMeans fills 4×4 pixels with those means of the pixels around them that direction names. It reads 16 bytes of the row above, from 6 to the left on.")
	Pragma("noescape")
	dst, stride, direction := asm.Pointer("dst"), asm.Pointer("stride"), asm.Pointer("direction")
	above := GP64()
	MOVQ(dst, above)
	SUBQ(stride, above)
	around := XMM() // bytes 1 to 4 the left column upwards, 5 to 13 the corner and what is above, 0 and 14 the ends once more
	VMOVDQU(Mem{Base: above, Disp: -6}, around)
	three := GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three)
	left := []Mem{
		{Base: dst, Disp: -1}, {Base: dst, Disp: -1, Index: stride, Scale: 1},
		{Base: dst, Disp: -1, Index: stride, Scale: 2}, {Base: dst, Disp: -1, Index: three, Scale: 1},
	}
	for i, m := range left {
		VPINSRB(U8(4-i), m, around, around)
	}
	VPINSRB(U8(0), left[3], around, around)
	VPINSRB(U8(14), Mem{Base: above, Disp: 7}, around, around)
	middle, next := XMM(), XMM()
	VPSRLDQ(U8(1), around, middle)
	VPSRLDQ(U8(2), around, next)
	pairs, sides, odd := XMM(), XMM(), XMM()
	VPAVGB(middle, around, pairs)
	// Half the sum of both neighbours is rounded down, so that the mean of it and the middle is rounded once.
	VPXOR(next, around, odd)
	VPAND(one, odd, odd)
	VPAVGB(next, around, sides)
	VPSUBB(odd, sides, sides)
	threes := XMM()
	VPAVGB(middle, sides, threes)
	// A shuffle gives 0 where the highest bit of its index is set: for threes from 16 on, for pairs below.
	at, of := XMM(), XMM()
	VMOVDQU(Mem{Base: direction}, at)
	VPADDB(low, at, of)
	VPSHUFB(of, threes, threes)
	VPXOR(bytes("predictPair", 16), at, at)
	VPADDB(low, at, at)
	VPSHUFB(at, pairs, pairs)
	VPOR(pairs, threes, threes)
	for i := range 4 {
		VPEXTRD(U8(i), threes, Mem{Base: dst})
		if i < 3 {
			ADDQ(stride, dst)
		}
	}
	RET()
}
