package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// What it knows of package vp8, where a test compares it.
const (
	partitionValue, partitionSpan, partitionBits = 0, 8, 16
	partitionData, partitionSize, partitionAt    = 24, 32, 48

	perContext = 11 // probabilities
	perBand    = 3 * perContext
)

// tokenMargin is how many bytes there must be for a block: at most 127 bits of each coefficient, and what a refill looks at.
const tokenMargin = 16*16 + 16

// tokens is the registers and parameters of readBlocks. The range is in span, of 128 to 256; value is the data from its highest bit on, of which valid bits are
// there. A bit leaves the part of the range that it takes, and value where it was, until settle says by how much both have to be shifted: then the next bit's
// product need not wait for that.
type tokens struct {
	span, value, valid, at GPVirtual
	shift                  GPVirtual
	row, next, n, left     GPVirtual // the probabilities of coefficient n, and of the next one in the first context
	places, block, v       GPVirtual
	rest, split, new       GPVirtual
	probabilities, factors Mem
}

var bands = [18]int{0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7}
var zigzag = [16]int{0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15}

// arithmetic writes what the arithmetic decoder's partitions are read by.
func arithmetic() {
	readBlocks()
	readBlockModes()
}

// readBlocks reads blocks of coefficients.
func readBlocks() {
	TEXT("readBlocks", NOSPLIT, "func(p *uint64, probabilities *uint8, factors *int32, blocks *int16, counts, above, left *uint8, side, count, first int) (n int)")
	Doc("readBlocks reads the coefficients of count blocks from first on, of which side are a line, times their factors, from the data of a",
		"partition. The blocks' memory is 0. Counts is for the places behind each one's last coefficient; above and left tell which neighbours",
		"have some, and in the end which of these blocks at the edge do. It returns how many blocks it read: fewer where the data have fewer than 272 bytes left.")
	Pragma("noescape")
	end, done, x := AllocLocal(8), AllocLocal(8), AllocLocal(8)
	t := newTokens("blocks")
	t.places, t.factors = GP64(), asm.Param("factors")
	LEAQ(placesOf(), t.places)
	MOVQ(Mem{Base: t.rest, Disp: partitionSize}, t.split)
	LEAQ(Mem{Base: t.at, Index: t.split, Scale: 1, Disp: -tokenMargin}, t.split)
	MOVQ(t.split, end)
	t.begin()
	MOVQ(U32(0), done)
	Label("line")
	MOVQ(asm.Param("left"), t.rest)
	MOVBLZX(Mem{Base: t.rest}, t.left.As32())
	MOVQ(U32(0), x)
	Label("block")
	CMPQ(t.at, end)
	JG(LabelRef("done"))
	t.beginBlock(x)
	t.coefficients()
	Label("ended")
	t.endBlock(done, x)
	JNE(LabelRef("block"))
	INCQ(asm.Param("left"))
	MOVQ(asm.Param("left"), t.rest)
	MOVQ(done, t.split)
	CMPQ(t.split, asm.Param("count"))
	JNE(LabelRef("line"))
	Label("done")
	t.done()
	MOVQ(done, t.rest)
	Store(t.rest, ReturnIndex(0))
	RET()
}

// beginBlock sets row to the probabilities of a block's first coefficient.
func (t *tokens) beginBlock(x Mem) {
	MOVQ(asm.Param("first"), t.n)
	MOVQ(asm.Param("above"), t.rest)
	ADDQ(x, t.rest)
	MOVBLZX(Mem{Base: t.rest}, t.row.As32())
	IMUL3L(U8(perContext), t.row.As32(), t.row.As32())
	t.setNext(0)
	ADDQ(t.next, t.row)
	LEAL(Mem{Base: t.left, Index: t.left, Scale: 4}, t.rest.As32())
	LEAL(Mem{Base: t.left, Index: t.rest, Scale: 2}, t.rest.As32())
	ADDQ(t.rest, t.row)
	t.setNext(1)
}

// endBlock notes how many coefficients the block has, and compares the next place with the end of the line.
func (t *tokens) endBlock(done, x Mem) {
	XORL(t.left.As32(), t.left.As32())
	CMPQ(t.n, asm.Param("first"))
	SETGT(t.left.As8())
	MOVQ(asm.Param("counts"), t.rest)
	ADDQ(done, t.rest)
	MOVB(t.n.As8(), Mem{Base: t.rest})
	MOVQ(asm.Param("above"), t.rest)
	ADDQ(x, t.rest)
	MOVB(t.left.As8(), Mem{Base: t.rest})
	MOVQ(asm.Param("left"), t.rest)
	MOVB(t.left.As8(), Mem{Base: t.rest})
	ADDQ(U8(32), t.block)
	INCQ(done)
	MOVQ(x, t.rest)
	INCQ(t.rest)
	MOVQ(t.rest, x)
	CMPQ(t.rest, asm.Param("side"))
}

// placesOf has for each coefficient, and two behind the last one, where its probabilities begin, and where it is stored.
func placesOf() Mem {
	m := GLOBL("tokenPlaces", 24)
	for i, b := range bands {
		DATA(4*i, U16(uint16(b*perBand)))
		z := 0
		if i < 16 {
			z = 2 * zigzag[i]
		}
		DATA(4*i+2, U16(uint16(z)))
	}
	return m
}

// newTokens returns registers, of which at is where the partition's data begin, and rest the partition.
func newTokens(block string) *tokens {
	t := &tokens{span: GP64(), value: GP64(), valid: GP64(), at: GP64(), shift: GP64(), row: GP64(), next: GP64(), n: GP64(), left: GP64(), block: asm.Pointer(block),
		rest: GP64(), split: GP64(), new: GP64(), v: GP64(), probabilities: asm.Param("probabilities")}
	MOVQ(asm.Param("p"), t.rest)
	MOVQ(Mem{Base: t.rest, Disp: partitionData}, t.at)
	return t
}

// begin takes the window of the partition at rest.
func (t *tokens) begin() {
	p := t.rest
	ADDQ(Mem{Base: p, Disp: partitionAt}, t.at)
	MOVL(Mem{Base: p, Disp: partitionSpan}, t.span.As32())
	INCL(t.span.As32())
	MOVQ(Mem{Base: p, Disp: partitionBits}, t.valid)
	ADDQ(U8(8), t.valid)
	MOVQ(Mem{Base: p, Disp: partitionValue}, t.value)
	MOVQ(t.valid, t.split)
	NEGQ(t.split)
	SHLXQ(t.split, t.value, t.value)
}

// done puts the window back.
func (t *tokens) done() {
	p := t.rest
	MOVQ(asm.Param("p"), p)
	SUBQ(Mem{Base: p, Disp: partitionData}, t.at)
	MOVQ(t.at, Mem{Base: p, Disp: partitionAt})
	DECL(t.span.As32())
	MOVL(t.span.As32(), Mem{Base: p, Disp: partitionSpan})
	MOVQ(t.valid, t.split)
	NEGQ(t.split)
	SHRXQ(t.split, t.value, t.value)
	MOVQ(t.value, Mem{Base: p, Disp: partitionValue})
	SUBQ(U8(8), t.valid)
	MOVQ(t.valid, Mem{Base: p, Disp: partitionBits})
}

// setNext makes next the probabilities of coefficient n+by, in the first context.
func (t *tokens) setNext(by int) {
	MOVWLZX(Mem{Base: t.places, Index: t.n, Scale: 4, Disp: 4 * by}, t.next.As32())
	ADDQ(t.probabilities, t.next)
}

// refill makes at least 56 bits valid.
func (t *tokens) refill() {
	MOVQ(Mem{Base: t.at}, t.rest)
	BSWAPQ(t.rest)
	SHRXQ(t.valid, t.rest, t.rest)
	ORQ(t.rest, t.value)
	MOVL(t.valid.As32(), t.rest.As32())
	SHRL(U8(3), t.rest.As32())
	ADDQ(U8(7), t.at)
	SUBQ(t.rest, t.at)
	ORL(U8(56), t.valid.As32())
}

// settle says how far the range that the last bit left must be shifted to be 128 or more, and shifts value.
func (t *tokens) settle() {
	LZCNTL(t.span.As32(), t.shift.As32())
	SUBL(U8(24), t.shift.As32())
	SHLXQ(t.shift, t.value, t.value)
	SUBL(t.shift.As32(), t.valid.As32())
}

// normalize makes a range of 128 or more of what the last bit left.
func (t *tokens) normalize() {
	t.settle()
	SHLXL(t.shift.As32(), t.span.As32(), t.span.As32())
}

// divideWhole makes split the part of a range of 128 or more that a zero has, and rest the same in value's place. The range less one times the probability,
// by 256, and one, is the range times the probability, and 256 less the probability, by 256: so only one addition waits for the product.
func (t *tokens) divideWhole(probability Mem) {
	t.product(probability)
	ADDL(t.rest.As32(), t.split.As32())
	SHRL(U8(8), t.split.As32())
	RORXQ(U8(8), t.split, t.rest)
}

// divide is divideWhole for what the last bit left, settled.
func (t *tokens) divide(probability Mem) {
	t.product(probability)
	t.divided()
}

// divideBy is divide by a probability that is known.
func (t *tokens) divideBy(probability int) {
	IMUL3L(U32(probability), t.span.As32(), t.split.As32())
	MOVL(U32(256-probability), t.rest.As32())
	t.divided()
}

func (t *tokens) product(probability Mem) {
	MOVBLZX(probability, t.split.As32())
	MOVL(U32(256), t.rest.As32())
	SUBL(t.split.As32(), t.rest.As32())
	IMULL(t.span.As32(), t.split.As32())
}

// divided is divide behind its product, which is not shifted: all else is by as much, what is added rounded down, which changes nothing.
func (t *tokens) divided() {
	SHRXL(t.shift.As32(), t.rest.As32(), t.rest.As32())
	ADDL(t.rest.As32(), t.split.As32())
	MOVL(U32(8), t.new.As32())
	SUBL(t.shift.As32(), t.new.As32())
	SHRXL(t.new.As32(), t.split.As32(), t.split.As32())
	SHLXL(t.shift.As32(), t.span.As32(), t.span.As32())
	RORXQ(U8(8), t.split, t.rest)
}

// probability is where the row has one.
func (t *tokens) probability(place int) Mem { return Mem{Base: t.row, Disp: place} }

// bit decodes a bit. Where it is zero it goes to a label, which must begin with zero.
func (t *tokens) bit(place int, zero string) {
	t.settle()
	t.settledBit(place, zero)
}

func (t *tokens) settledBit(place int, zero string) {
	t.divide(t.probability(place))
	t.one(zero)
}

// compare compares value with the part of the range that a zero has.
func (t *tokens) compare() {
	MOVQ(t.value, t.new)
	SHRQ(U8(56), t.new)
	CMPL(t.new.As32(), t.split.As32())
}

// one takes the part of a one of a range that is divided, or goes to a label.
func (t *tokens) one(zero string) {
	t.compare()
	JCS(LabelRef(zero))
	SUBQ(t.rest, t.value)
	SUBL(t.split.As32(), t.span.As32())
}

// zero begins at a label where a bit is zero.
func (t *tokens) zero(label string) {
	Label(label)
	MOVL(t.split.As32(), t.span.As32())
}

// number doubles v and adds a bit: without a branch, where no branch would foretell it.
func (t *tokens) number(probability Mem) {
	t.settle()
	t.divide(probability)
	t.addBit()
}

// numberBy is number by a probability that is known.
func (t *tokens) numberBy(probability int) {
	t.settle()
	t.divideBy(probability)
	t.addBit()
}

// addBit doubles v and adds the bit whose range has been divided.
func (t *tokens) addBit() {
	SUBL(t.split.As32(), t.span.As32())
	MOVQ(t.value, t.new)
	SUBQ(t.rest, t.new)
	CMOVLCS(t.split.As32(), t.span.As32())
	CMOVQCC(t.new, t.value)
	CMC()
	ADCL(t.v.As32(), t.v.As32())
}

// sign makes v negative where a bit is one. As in libwebp it shifts by one bit, so that the range may be 256.
func (t *tokens) sign() {
	t.normalize()
	LEAL(Mem{Base: t.span, Disp: 1}, t.split.As32())
	ANDL(I8(-2), t.split.As32())
	ANDL(I8(-2), t.span.As32())
	MOVQ(t.split, t.rest)
	SHLQ(U8(55), t.rest)
	MOVQ(t.value, t.new)
	SUBQ(t.rest, t.new)
	CMOVQCC(t.new, t.value)
	CMOVLCS(t.split.As32(), t.span.As32())
	SBBL(t.rest.As32(), t.rest.As32()) // all ones where the bit is zero
	NOTL(t.rest.As32())
	XORL(t.rest.As32(), t.v.As32())
	SUBL(t.rest.As32(), t.v.As32())
	SHLQ(U8(1), t.value)
	DECL(t.valid.As32())
}

// coefficients reads a block as Decoder.readBlock does, and goes on at label ended. A refill has bits for six bits of the tokens, which take 7 at most, and a sign.
func (t *tokens) coefficients() {
	Label("token")
	t.refill()
	t.divideWhole(t.probability(0))
	t.one("end")
	t.settle()
	Label("first")
	t.settledBit(1, "nothing")
	t.bit(2, "small")
	t.bit(3, "four")
	t.large()
	Label("signed2")
	t.store(2)
	JMP(LabelRef("token"))

	t.zero("small")
	MOVL(U32(1), t.v.As32())
	t.store(1)
	JMP(LabelRef("token"))

	t.zero("nothing")
	MOVQ(t.next, t.row)
	INCL(t.n.As32())
	t.setNext(1)
	t.settle()
	CMPL(t.n.As32(), U8(16))
	JEQ(LabelRef("last"))
	t.refill()
	JMP(LabelRef("first"))

	t.zero("four")
	t.bit(4, "two")
	MOVL(U32(0), t.v.As32())
	t.number(t.probability(5))
	ADDL(U8(3), t.v.As32())
	JMP(LabelRef("signed2"))
	t.zero("two")
	MOVL(U32(2), t.v.As32())
	JMP(LabelRef("signed2"))

	t.zero("end")
	t.settle()
	Label("last")
	SHLXL(t.shift.As32(), t.span.As32(), t.span.As32())
}

// large reads a value of 5 or more as partition.large does, and goes on at label signed2.
func (t *tokens) large() {
	t.settle()
	t.refill()
	t.settledBit(6, "ten")
	MOVL(U32(0), t.v.As32())
	t.number(t.probability(8))
	LEAQ(Mem{Base: t.row, Index: t.v, Scale: 1}, t.new)
	t.number(Mem{Base: t.new, Disp: 9})
	CMPL(t.v.As32(), U8(1))
	JCS(LabelRef("category0"))
	JEQ(LabelRef("category1"))
	CMPL(t.v.As32(), U8(2))
	JEQ(LabelRef("category2"))
	for c, further := range [4][]int{{254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129}, {180, 157, 141, 134, 130}, {176, 155, 140, 135}, {173, 148, 140}} {
		if c > 0 {
			Label(fmt.Sprint("category", 3-c))
		}
		MOVL(U32(0), t.v.As32())
		for i, known := range further {
			t.settle()
			if i%4 == 0 {
				t.refill()
			}
			t.divideBy(known)
			t.addBit()
		}
		ADDL(U8(3+8<<(3-c)), t.v.As32())
		JMP(LabelRef("signed2"))
	}
	t.zero("ten")
	t.bit(7, "six")
	MOVL(U32(0), t.v.As32())
	t.numberBy(165)
	t.numberBy(145)
	ADDL(U8(7), t.v.As32())
	JMP(LabelRef("signed2"))
	t.zero("six")
	MOVL(U32(0), t.v.As32())
	t.numberBy(159)
	ADDL(U8(5), t.v.As32())
}

// store gives the value its sign, stores it times the factor, and goes to the next coefficient in a context, or to label ended.
func (t *tokens) store(context int) {
	t.sign()
	MOVQ(t.factors, t.rest)
	CMPL(t.n.As32(), U8(1))
	SBBQ(t.split, t.split) // −1 for the first one
	IMULL(Mem{Base: t.rest, Index: t.split, Scale: 4, Disp: 4}, t.v.As32())
	MOVWLZX(Mem{Base: t.places, Index: t.n, Scale: 4, Disp: 2}, t.rest.As32())
	MOVW(t.v.As16(), Mem{Base: t.block, Index: t.rest, Scale: 1})
	LEAQ(Mem{Base: t.next, Disp: context * perContext}, t.row)
	INCL(t.n.As32())
	t.setNext(1)
	CMPL(t.n.As32(), U8(16))
	JEQ(LabelRef("ended"))
}
