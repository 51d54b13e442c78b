package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

const bandParams = "func(data *byte, bits *uint64, end int, entries *uint32, zigzag *byte, first, last, low, ended int, " +
	"sent *uint64, count int, cells *int16, step int"

// band is a lane in a scan of a progressive file, at a block of a row. Its k counts in the order of the file.
type band struct {
	*lane
	entries, zigzag reg.GPVirtual
	before          [3]Mem // acc, n and p where the block began
}

// blocks loops over the blocks. begin reads one that has data; skip is for those that have ended before. Both go to label block then. Where begin leaves
// a block to Go it goes to bail, and has changed nothing but coefficients, to what they will be; skip goes to done before it has changed anything.
func (b *band) blocks(begin, skip func()) {
	t := GP64()
	JMP(LabelRef("first"))
	Label("block")
	ADDQ(U8(8), asm.Param("sent"))
	ADDQ(asm.Param("step"), b.out)
	DECQ(asm.Param("count"))
	Label("first")
	CMPQ(asm.Param("count"), U8(0))
	JLE(LabelRef("done"))
	CMPQ(asm.Param("ended"), U8(0))
	JNE(LabelRef("skip"))
	b.check("done")
	for i, r := range b.place() {
		MOVQ(r, b.before[i])
	}
	b.refill()
	begin()
	Label("skip")
	skip()
	Label("bail")
	for i, r := range b.place() {
		MOVQ(b.before[i], r)
	}
	MOVQ(U32(0), asm.Param("ended"))
	Label("done")
	b.save()
	MOVQ(asm.Param("count"), t)
	Store(t, ReturnIndex(0))
	MOVQ(asm.Param("ended"), t)
	Store(t, ReturnIndex(1))
	RET()
}

func newBand() *band {
	b := &band{lane: newLane("", true), zigzag: asm.Pointer("zigzag"), entries: asm.Pointer("entries")}
	for i := range b.before {
		b.before[i] = AllocLocal(8)
	}
	MOVQ(asm.Param("cells"), b.out)
	b.load()
	return b
}

func (b *band) place() [3]reg.GPVirtual { return [3]reg.GPVirtual{b.acc, b.n, b.p} }

// open loads which coefficients of the block have been sent, and sets k to before the band.
func (b *band) open(sent reg.GPVirtual) {
	MOVQ(asm.Param("sent"), sent)
	MOVQ(Mem{Base: sent}, sent)
	MOVQ(asm.Param("first"), b.k)
	DECQ(b.k)
}

// close stores which coefficients have been sent now.
func (b *band) close(sent reg.GPVirtual) {
	t := GP64()
	MOVQ(asm.Param("sent"), t)
	MOVQ(sent, Mem{Base: t})
}

// look looks up a symbol, for which the lane has the bits, and refills the lane meanwhile.
func (b *band) look(e reg.GPVirtual) {
	MOVQ(b.acc, e)
	SHRQ(U8(64-acBits), e)
	MOVL(Mem{Base: b.entries, Index: e, Scale: 4}, e.As32())
	b.refill()
}

// put stores the coefficient at k, which has been sent now.
func (b *band) put(v, sent reg.GPVirtual) {
	BTSQ(b.k, sent)
	MOVW(v.As16(), b.coefficient(b.k))
}

func (b *band) coefficient(k reg.GPVirtual) Mem {
	t := GP64()
	MOVBLZX(Mem{Base: b.zigzag, Index: k, Scale: 1}, t.As32())
	return Mem{Base: b.out, Index: t, Scale: 2}
}

// end notes how many more blocks end with this one, as e says. It goes to label bail with an e of a long code.
func (b *band) end(e reg.GPVirtual) {
	TESTL(e.As32(), e.As32())
	JZ(LabelRef("bail"))
	shift, more, one := GP64(), GP64(), GP64()
	MOVL(e.As32(), shift.As32())
	SHRL(U8(8), shift.As32())
	SHLXQ(shift, b.acc, more)
	SHRQ(U8(1), more)
	SHRL(U8(8), shift.As32())
	SHRXQ(shift, more, more)
	NOTL(shift.As32()) // from 63 less the size to the size, in the bits that count
	MOVL(U32(1), one.As32())
	SHLXQ(shift, one, one)
	LEAQ(Mem{Base: more, Index: one, Scale: 1, Disp: -1}, more)
	MOVQ(more, asm.Param("ended"))
	b.drop(e)
}

func firstBands() {
	TEXT("readFirstBands", NOSPLIT, bandParams+") (left, more int)")
	Pragma("noescape")
	Doc("readFirstBands reads the bands of count neighbouring blocks for the first time, and returns how many blocks it left, and ended.")
	b := newBand()
	b.blocks(func() {
		e, move, sent, low := GP64(), GP64(), GP64(), GP64()
		b.open(sent)
		MOVQ(asm.Param("low"), low)
		Label("symbol")
		b.look(e)
		LEAL(Mem{Base: e, Disp: -1 << 24}, move.As32())
		CMPL(move.As32(), U32(16<<24))
		JCC(LabelRef("end")) // a move that is not 1 to 16
		v := b.value(e)
		SHLXQ(low, v, v)
		b.drop(e)
		MOVL(e.As32(), move.As32())
		SHRL(U8(24), move.As32())
		ADDL(move.As32(), b.k.As32())
		CMPL(b.k.As32(), U8(63))
		JA(LabelRef("bail"))
		TESTW(v.As16(), v.As16())
		JZ(LabelRef("zero"))
		b.put(v, sent)
		Label("next")
		CMPQ(b.k, asm.Param("last"))
		JLT(LabelRef("symbol"))
		Label("close")
		b.close(sent)
		JMP(LabelRef("block"))
		Label("zero") // sixteen of them, or a value that is cut off
		SHRL(U8(16), e.As32())
		ANDL(U8(63), e.As32())
		CMPL(e.As32(), U8(63))
		JE(LabelRef("next"))
		JMP(LabelRef("bail"))
		Label("end")
		b.end(e)
		JMP(LabelRef("close"))
	}, func() {
		n := GP64()
		MOVQ(asm.Param("ended"), n)
		CMPQ(n, asm.Param("count"))
		CMOVQGT(asm.Param("count"), n)
		SUBQ(n, asm.Param("ended"))
		SUBQ(n, asm.Param("count"))
		t := GP64()
		MOVQ(n, t)
		SHLQ(U8(3), t)
		ADDQ(t, asm.Param("sent"))
		IMULQ(asm.Param("step"), n)
		ADDQ(n, b.out)
		JMP(LabelRef("first"))
	})
}
