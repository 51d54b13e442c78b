package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// Of package vp8: the probabilities of a mode by that of the block to the left, and by that above.
const (
	perLeft  = 9
	perAbove = 10 * perLeft
)

// readBlockModes reads the modes of a macroblock's blocks.
func readBlockModes() {
	TEXT("readBlockModes", NOSPLIT, "func(p *uint64, probabilities *uint8, modes, above, left *uint8)")
	Doc("readBlockModes reads the modes of 4×4 blocks from the data of a partition, which has 128 bytes or more left. Above and left are those of neighbours,",
		"and in the end of these blocks at the edge.")
	Pragma("noescape")
	t := newTokens("modes")
	t.begin()
	XORL(t.n.As32(), t.n.As32())
	Label("line")
	MOVQ(asm.Param("left"), t.rest)
	MOVBLZX(Mem{Base: t.rest}, t.left.As32())
	Label("block")
	MOVL(t.n.As32(), t.next.As32())
	ANDL(U32(3), t.next.As32())
	ADDQ(asm.Param("above"), t.next)
	MOVBLZX(Mem{Base: t.next}, t.row.As32())
	IMUL3L(U8(perAbove), t.row.As32(), t.row.As32())
	ADDQ(t.probabilities, t.row)
	LEAL(Mem{Base: t.left, Index: t.left, Scale: 8}, t.left.As32())
	ADDQ(t.left, t.row)
	t.mode()
	MOVB(t.v.As8(), Mem{Base: t.next})
	MOVB(t.v.As8(), Mem{Base: t.block, Index: t.n, Scale: 1})
	MOVL(t.v.As32(), t.left.As32())
	INCL(t.n.As32())
	TESTL(U32(3), t.n.As32())
	JNE(LabelRef("block"))
	MOVQ(asm.Param("left"), t.rest)
	MOVB(t.v.As8(), Mem{Base: t.rest})
	INCQ(asm.Param("left"))
	CMPL(t.n.As32(), U8(16))
	JNE(LabelRef("line"))
	t.done()
	RET()
}

// mode reads a mode, by the tree that blockModeTree is.
func (t *tokens) mode() {
	is := func(label string, mode int) {
		t.zero(label)
		MOVL(U32(mode), t.v.As32())
		JMP(LabelRef("mode"))
	}
	t.refill()
	t.divideWhole(t.probability(0))
	t.one("dc")
	t.bit(1, "trueMotion")
	t.bit(2, "vertical")
	t.settle()
	t.refill()
	t.settledBit(3, "horizontalOrRight")
	t.bit(6, "leftDown")
	t.bit(7, "verticalLeft")
	MOVL(U32(8/2), t.v.As32())
	t.number(t.probability(8))
	JMP(LabelRef("mode"))
	t.zero("horizontalOrRight")
	t.bit(4, "horizontal")
	MOVL(U32(4/2), t.v.As32())
	t.number(t.probability(5))
	JMP(LabelRef("mode"))
	is("dc", 0)
	is("trueMotion", 1)
	is("vertical", 2)
	is("horizontal", 3)
	is("leftDown", 6)
	is("verticalLeft", 7)
	Label("mode")
	t.normalize()
}
