package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// shuffle makes a constant by which a shuffle puts bytes to places, and 0 to all others.
func shuffle(name string, places map[int]int) Mem {
	var b [16]int
	for i := range b {
		b[i] = 128
		if from, ok := places[i]; ok {
			b[i] = from
		}
	}
	m := GLOBL(name, 24)
	for i, v := range b {
		DATA(i, U8(v))
	}
	return m
}

// What is around a block is a vector: byte i+1 is pixel i as package vp8 counts them, byte 0 pixel 0 and byte 14 pixel 12 once more. It is put together of
// four blocks, whose rows are four bytes each.
type around struct {
	left, corner, above, right Mem // shuffles of the block to the left, that above it, the one above, and that to the right of it
	eight                      Mem // of the neighbours whose mean a block is
	up, across, angle          Mem // for each pixel the one above its column, that to the left of its row, and the corner
}

func newAround() around {
	up, across, angle := map[int]int{}, map[int]int{}, map[int]int{}
	for i := range 16 {
		up[i], across[i], angle[i] = 6+i%4, 4-i/4, 5
	}
	return around{
		left:   shuffle("aroundLeft", map[int]int{0: 15, 1: 15, 2: 11, 3: 7, 4: 3}),
		corner: shuffle("aroundCorner", map[int]int{5: 15}),
		above:  shuffle("aroundAbove", map[int]int{6: 12, 7: 13, 8: 14, 9: 15}),
		right:  shuffle("aroundRight", map[int]int{10: 12, 11: 13, 12: 14, 13: 15, 14: 15}),
		eight:  shuffle("aroundEight", map[int]int{0: 1, 1: 2, 2: 3, 3: 4, 4: 6, 5: 7, 6: 8, 7: 9}),
		up:     shuffle("aroundUp", up),
		across: shuffle("aroundAcross", across),
		angle:  shuffle("aroundAngle", angle),
	}
}

// blocks predicts 16 blocks and adds differences. All that a mode may ask for is made, without a branch, so that blocks that do not depend on one
// another are made at the same time.
func blocks() {
	a := newAround()
	TEXT("predictBlocks", NOSPLIT, "func(dst *byte, stride int, modes *uint8, predictors *uint8, differences *int16)")
	Doc("predictBlocks makes 16×16 pixels by 4×4, each by its mode's predictor, and adds differences. It reads the row above from 1 to the left to 4 to the right.")
	Pragma("noescape")
	dst, stride, modes := asm.Pointer("dst"), strideOf("stride"), asm.Pointer("modes")
	predictors, differences := asm.Pointer("predictors"), asm.Pointer("differences")
	row := GP64()
	MOVQ(dst, row)
	SUBQ(stride.one, row)
	above := xmms(5) // the blocks above, of which the lowest row counts, and the one to the right of the last
	for x := range above {
		VPXOR(above[x], above[x], above[x])
		VPINSRD(U8(3), Mem{Base: row, Disp: 4 * x}, above[x], above[x])
	}
	corner := XMM() // the block to the left of the first one above
	VPXOR(corner, corner, corner)
	VPINSRB(U8(15), Mem{Base: row, Disp: -1}, corner, corner)
	left := GP32()
	MOVL(U32(4), left)
	Label("line")
	before := XMM()
	VPXOR(before, before, before)
	for i, m := range stride.rows(dst) {
		VPINSRB(U8(4*i+3), m.Offset(-1), before, before)
	}
	next := XMM()
	VMOVDQA(before, next)
	for x := range 4 {
		e := XMM()
		VPSHUFB(a.corner, corner, e)
		orShuffled(a.above, above[x], e)
		orShuffled(a.right, above[x+1], e)
		orShuffled(a.left, before, e)
		mode := GP64()
		MOVBLZX(Mem{Base: modes, Disp: x}, mode.As32())
		SHLL(U8(6), mode.As32())
		ADDQ(predictors, mode)
		p := a.predicted(e, mode)
		addWords(p, [4]Mem{
			{Base: differences, Disp: 8 * x}, {Base: differences, Disp: 8*x + 32}, {Base: differences, Disp: 8*x + 64}, {Base: differences, Disp: 8*x + 96},
		})
		for i, m := range stride.rows(dst) {
			VPEXTRD(U8(i), p, m.Offset(4*x))
		}
		VMOVDQA(above[x], corner)
		VMOVDQA(p, above[x])
		VMOVDQA(p, before)
	}
	VMOVDQA(next, corner)
	LEAQ(Mem{Base: dst, Index: stride.one, Scale: 4}, dst)
	ADDQ(U8(4), modes)
	SUBQ(I8(-128), differences)
	DECL(left)
	JNZ(LabelRef("line"))
	RET()
}

func orShuffled(by Mem, v, to VecVirtual) {
	t := XMM()
	VPSHUFB(by, v, t)
	VPOR(t, to, to)
}

// predicted is a block's prediction by the predictor at mode, of what is around it.
func (a around) predicted(e VecVirtual, mode GPVirtual) VecVirtual {
	pairs, threes := means(e)
	VPSHUFB(Mem{Base: mode}, threes, threes)
	VPSHUFB(Mem{Base: mode, Disp: 16}, pairs, pairs)
	VPOR(pairs, threes, threes)
	motion := a.motion(e)
	VPAND(Mem{Base: mode, Disp: 32}, motion, motion)
	VPOR(motion, threes, threes)
	mean, zero := XMM(), XMM()
	VPXOR(zero, zero, zero)
	VPSHUFB(a.eight, e, mean)
	VPSADBW(zero, mean, mean)
	VPADDW(constant("block4", 4), mean, mean)
	VPSRLW(U8(3), mean, mean)
	VPSHUFB(Mem{Base: mode, Disp: 48}, mean, mean)
	VPOR(mean, threes, threes)
	return threes
}

// means are those of two pixels, of which byte i is of those before i and i, and those of three, of which byte i is of the one before i, i and the one behind.
func means(e VecVirtual) (pairs, threes VecVirtual) {
	middle, next := XMM(), XMM()
	VPSRLDQ(U8(1), e, middle)
	VPSRLDQ(U8(2), e, next)
	pairs, threes = XMM(), XMM()
	VPAVGB(middle, e, pairs)
	// Half the sum of both neighbours is rounded down, so that the mean of it and the middle is rounded once.
	odd := XMM()
	VPXOR(next, e, odd)
	VPAND(constant("blockOnes", 0x0101), odd, odd)
	VPAVGB(next, e, threes)
	VPSUBB(odd, threes, threes)
	VPAVGB(middle, threes, threes)
	return pairs, threes
}

// motion is what TrueMotion predicts: what is above, and what the left pixel has more than the corner.
func (a around) motion(e VecVirtual) VecVirtual {
	up, across, angle := XMM(), XMM(), XMM()
	VPSHUFB(a.up, e, up)
	VPSHUFB(a.across, e, across)
	VPSHUFB(a.angle, e, angle)
	return moved(up, across, angle)
}

// moved is from and what left has more than corner, within a byte.
func moved(from, left, corner VecVirtual) VecVirtual {
	more, less, p := XMM(), XMM(), XMM()
	VPSUBUSB(corner, left, more)
	VPSUBUSB(left, corner, less)
	VPADDUSB(more, from, p)
	VPSUBUSB(less, p, p)
	return p
}

// addWords adds words to bytes, of four words in memory each.
func addWords(p VecVirtual, words [4]Mem) {
	zero, halves := XMM(), xmms(2)
	VPXOR(zero, zero, zero)
	VPUNPCKLBW(zero, p, halves[0])
	VPUNPCKHBW(zero, p, halves[1])
	for i, half := range halves {
		add := XMM()
		VMOVQ(words[2*i], add)
		VMOVHPS(words[2*i+1], add, add)
		VPADDW(add, half, half)
	}
	VPACKUSWB(halves[1], halves[0], p)
}

// luma predicts row by row.
func luma() {
	TEXT("predictLuma", NOSPLIT, "func(dst *byte, stride int, from *uint8, left int, corner int, differences *int16)")
	Doc("predictLuma makes 16 rows of 16 pixels, and adds differences: rows of from and what the pixel to the left has more than the corner, each with its mask.")
	Pragma("noescape")
	dst, stride, differences := asm.Pointer("dst"), asm.Pointer("stride"), asm.Pointer("differences")
	from, mask, corner, above, count := XMM(), broadcast("left"), XMM(), GP64(), GP32()
	VMOVDQU(Mem{Base: asm.Pointer("from")}, from)
	MOVQ(dst, above)
	SUBQ(stride, above)
	VPBROADCASTB(Mem{Base: above, Disp: -1}, corner)
	VPAND(broadcast("corner"), corner, corner)
	MOVL(U32(16), count)
	Label("row")
	left := XMM()
	VPBROADCASTB(Mem{Base: dst, Disp: -1}, left)
	VPAND(mask, left, left)
	p := moved(from, left, corner)
	addRow(p, Mem{Base: differences}, Mem{Base: differences, Disp: 16})
	VMOVDQU(p, Mem{Base: dst})
	ADDQ(stride, dst)
	ADDQ(U8(32), differences)
	DECL(count)
	JNZ(LabelRef("row"))
	RET()
}

// chroma predicts rows of Cb and of Cr side by side.
func chroma() {
	TEXT("predictChroma", NOSPLIT, "func(cb *byte, cr *byte, stride int, from *uint8, left int, corner int, differences *int16)")
	Doc("predictChroma makes 8 rows of 8 pixels of both as predictLuma does. Differences are of four rows of Cb, and of the four below, and of Cr.")
	Pragma("noescape")
	cb, cr, stride, differences := asm.Pointer("cb"), asm.Pointer("cr"), asm.Pointer("stride"), asm.Pointer("differences")
	from, mask, above := XMM(), broadcast("left"), [2]GPVirtual{GP64(), GP64()}
	VMOVDQU(Mem{Base: asm.Pointer("from")}, from)
	for i, p := range []GPVirtual{cb, cr} {
		MOVQ(p, above[i])
		SUBQ(stride, above[i])
	}
	corner := bothBefore(above[0], above[1])
	VPAND(broadcast("corner"), corner, corner)
	for y := range 8 {
		left := bothBefore(cb, cr)
		VPAND(mask, left, left)
		p := moved(from, left, corner)
		at := y%4*32 + y/4*16
		addRow(p, Mem{Base: differences, Disp: at}, Mem{Base: differences, Disp: at + 128})
		VMOVQ(p, Mem{Base: cb})
		VMOVHPS(p, Mem{Base: cr})
		ADDQ(stride, cb)
		ADDQ(stride, cr)
	}
	RET()
}

// bothBefore is eight times the pixel before one place, and eight times that before the other.
func bothBefore(a, b Register) VecVirtual {
	v, w := XMM(), XMM()
	VPBROADCASTB(Mem{Base: a, Disp: -1}, v)
	VPBROADCASTB(Mem{Base: b, Disp: -1}, w)
	VPUNPCKLQDQ(w, v, v)
	return v
}

// addRow adds eight words in memory each to the lower half and to the upper half of bytes.
func addRow(p VecVirtual, lower, upper Mem) {
	zero, high := XMM(), XMM()
	VPXOR(zero, zero, zero)
	VPUNPCKHBW(zero, p, high)
	VPUNPCKLBW(zero, p, p)
	VPADDW(lower, p, p)
	VPADDW(upper, high, high)
	VPACKUSWB(high, p, p)
}

// broadcast makes a vector of a parameter's lowest byte.
func broadcast(name string) VecVirtual {
	v := XMM()
	VMOVD(asm.Pointer(name).As32(), v)
	VPBROADCASTB(v, v)
	return v
}
