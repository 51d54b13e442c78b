package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// refiner is a band whose coefficients take one more bit.
type refiner struct {
	*band
	next, corrections  reg.GPVirtual // the next free place, in its list; the corrections so far, the last one lowest
	all, below         Mem           // the coefficients of the band, and those before it
	minus, plus, twice Mem           // new coefficients, and their difference
	old, free          Mem           // the coefficients of the block that are not zero, and the places of the others
}

func newRefiner() *refiner {
	r := &refiner{band: newBand(), next: GP64(), corrections: GP64(), free: AllocLocal(placesBytes)}
	for _, m := range []*Mem{&r.all, &r.below, &r.minus, &r.plus, &r.twice, &r.old} {
		*m = AllocLocal(8)
	}
	ones, shift, t := GP64(), GP64(), GP64()
	MOVQ(I32(-1), ones)
	MOVQ(asm.Param("first"), shift)
	SHLXQ(shift, ones, t)
	MOVQ(t, r.all)
	NOTQ(t)
	MOVQ(t, r.below)
	MOVQ(asm.Param("last"), shift)
	NOTQ(shift) // 63 less it, in the bits that count
	SHRXQ(shift, ones, t)
	ANDQ(t, r.all)
	MOVQ(asm.Param("low"), shift)
	SHLXQ(shift, ones, t)
	MOVQ(t, r.minus)
	NEGQ(t)
	MOVQ(t, r.plus)
	ADDQ(t, t)
	MOVQ(t, r.twice)
	return r
}

func refineBands() {
	TEXT("readRefiningBands", NOSPLIT, bandParams+", bytePlaces *byte) (left, more int)")
	Pragma("noescape")
	Doc("readRefiningBands reads one more bit of the bands of count neighbouring blocks, and returns how many blocks it left, and ended.")
	r := newRefiner()
	r.blocks(func() {
		e, sent := GP64(), GP64()
		r.list()
		LEAQ(r.free.Offset(-1), r.next)
		r.open(sent)
		MOVQ(U32(0), r.corrections)
		Label("symbol")
		r.look(e)
		v := r.new(e)
		r.pass(e)
		r.put(v, sent)
		Label("next")
		CMPQ(r.k, asm.Param("last"))
		JLT(LabelRef("symbol"))
		Label("close")
		r.close(sent)
		Label("correct")
		r.correct()
		Label("special")
		r.special(e)
	}, r.skip)
}

// skip is for a block that has corrections only.
func (r *refiner) skip() {
	t, n := GP64(), GP64()
	MOVQ(asm.Param("sent"), t)
	MOVQ(Mem{Base: t}, t)
	ANDQ(r.all, t)
	JZ(LabelRef("nothing"))
	MOVQ(t, r.old)
	r.check("done")
	r.refill()
	POPCNTQ(r.old, n)
	CMPL(n.As32(), U8(refilled))
	JA(LabelRef("done"))
	MOVQ(U32(0), r.corrections)
	r.take(n)
	DECQ(asm.Param("ended"))
	JMP(LabelRef("correct"))
	Label("nothing")
	DECQ(asm.Param("ended"))
	JMP(LabelRef("block"))
}

// list sets old, and free as places.set does.
func (r *refiner) list() {
	const each = 0x0101010101010101
	mask, at, bytes, from, step, m, list := GP64(), GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(asm.Param("sent"), mask)
	MOVQ(Mem{Base: mask}, mask)
	ANDQ(r.all, mask)
	MOVQ(mask, r.old)
	ORQ(r.below, mask)
	NOTQ(mask)
	LEAQ(r.free, at)
	MOVQ(asm.Param("bytePlaces"), bytes)
	XORL(from.As32(), from.As32())
	MOVQ(U64(8*each), step)
	for range 8 {
		MOVBLZX(mask.As8(), m.As32())
		MOVQ(Mem{Base: bytes, Index: m, Scale: 8}, list)
		ADDQ(from, list)
		MOVQ(list, Mem{Base: at})
		POPCNTL(m.As32(), m.As32())
		ADDQ(m, at)
		SHRQ(U8(8), mask)
		ADDQ(step, from)
	}
	MOVQ(U64(0x0706050403020100), list)
	ADDQ(from, list)
	MOVQ(list, Mem{Base: at})
	ADDQ(step, list)
	MOVQ(list, Mem{Base: at, Disp: 8})
}

// new is the new coefficient of e. It goes to label special with an e that has none.
func (r *refiner) new(e reg.GPVirtual) reg.GPVirtual {
	const end, sized, zeros = 1 << 31, 1 << 17, 1 << 16 // set in what ends a block, in all but 0, and in sixteen zeros
	v, t := GP64(), GP64()
	MOVL(e.As32(), t.As32())
	ANDL(U32(end|sized|zeros), t.As32())
	CMPL(t.As32(), U32(sized))
	JNE(LabelRef("special"))
	MOVL(e.As32(), t.As32())
	SHRL(U8(8), t.As32())
	SHLXQ(t, r.acc, v)
	SARQ(U8(63), v)
	ANDQ(r.twice, v)
	ADDQ(r.minus, v)
	return v
}

// pass takes e and the corrections behind it, and moves k to where the run of e leads. It uses e up.
func (r *refiner) pass(e reg.GPVirtual) {
	n := GP64()
	r.drop(e)
	SHRL(U8(24), e.As32())
	ADDQ(e, r.next)
	ADDL(e.As32(), r.k.As32())
	MOVBLZX(Mem{Base: r.next}, e.As32())
	MOVL(e.As32(), n.As32())
	SUBL(r.k.As32(), n.As32())
	CMPL(n.As32(), U8(refilled-(acBits+1)-acBits)) // behind a sign, and before the next code
	JA(LabelRef("bail"))
	r.take(n)
	MOVL(e.As32(), r.k.As32())
	CMPQ(r.k, asm.Param("last"))
	JGT(LabelRef("bail"))
}

// take takes n corrections. It uses n up.
func (r *refiner) take(n reg.GPVirtual) {
	bits := GP64()
	SHLXQ(n, r.corrections, r.corrections)
	MOVQ(r.acc, bits)
	r.drop(n)
	SHRQ(U8(1), bits)
	XORL(U8(63), n.As32())
	SHRXQ(n, bits, bits)
	ORQ(bits, r.corrections)
}

// special is an e without a coefficient: sixteen zeros, or the end of the block and all corrections to come.
func (r *refiner) special(e reg.GPVirtual) {
	t := GP64()
	MOVL(e.As32(), t.As32())
	SHRL(U8(24), t.As32())
	CMPL(t.As32(), U8(16))
	JNE(LabelRef("end"))
	r.pass(e)
	JMP(LabelRef("next"))
	Label("end")
	r.end(e)
	r.refill()
	MOVQ(r.old, t)
	SHRXQ(r.k, t, t)
	SHRQ(U8(1), t)
	POPCNTQ(t, t)
	CMPL(t.As32(), U8(refilled))
	JA(LabelRef("bail"))
	r.take(t)
	JMP(LabelRef("close"))
}

// correct is package jpeg's function of that name, and goes to label block.
func (r *refiner) correct() {
	places, t, v, by, none := GP64(), GP64(), GP64(), GP64(), GP64()
	CMPQ(asm.Param("step"), U8(0))
	JE(LabelRef("block")) // it is not needed
	TESTQ(r.corrections, r.corrections)
	JZ(LabelRef("block"))
	MOVQ(r.old, places)
	POPCNTQ(places, t)
	NEGQ(t)
	SHLXQ(t, r.corrections, r.corrections)
	XORL(none.As32(), none.As32())
	Label("correction")
	TZCNTQ(places, t)
	BLSRQ(places, places)
	at := r.coefficient(t)
	MOVWLSX(at, v.As32())
	MOVL(v.As32(), t.As32())
	SARL(U8(31), t.As32())
	MOVL(r.plus, by.As32())
	XORL(t.As32(), by.As32())
	SUBL(t.As32(), by.As32())
	TESTL(v.As32(), r.plus)
	CMOVLNE(none.As32(), by.As32())
	MOVQ(r.corrections, t)
	SARQ(U8(63), t)
	ANDL(t.As32(), by.As32())
	ADDL(by.As32(), v.As32())
	MOVW(v.As16(), at)
	ADDQ(r.corrections, r.corrections)
	JNZ(LabelRef("correction"))
	JMP(LabelRef("block"))
}
