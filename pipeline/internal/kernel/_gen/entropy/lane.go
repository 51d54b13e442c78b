package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lane is the registers and parameters of one lane. Of n only the lowest byte counts between one refill and the next.
type lane struct {
	suffix    string // of its parameters
	stores    bool
	acc, n, p reg.GPVirtual // as bits, p for at
	k, out    reg.GPVirtual // position in the block, the block
	unit      Mem           // at hand
}

func newLane(suffix string, stores bool) *lane {
	return &lane{suffix, stores, GP64(), GP64(), GP64(), GP64(), GP64(), AllocLocal(8)}
}

func (l *lane) param(name string) Mem { return param(name + l.suffix) }

// load takes the lane's bits from memory.
func (l *lane) load() {
	b := GP64()
	MOVQ(l.param("bits"), b)
	MOVQ(Mem{Base: b, Disp: bitsAcc}, l.acc)
	MOVQ(Mem{Base: b, Disp: bitsN}, l.n)
	MOVQ(Mem{Base: b, Disp: bitsAt}, l.p)
	ADDQ(l.param("data"), l.p)
}

// save puts the lane's bits back.
func (l *lane) save() {
	b := GP64()
	MOVQ(l.param("bits"), b)
	MOVBLZX(l.n.As8(), l.n.As32())
	SUBQ(l.param("data"), l.p)
	MOVQ(l.acc, Mem{Base: b, Disp: bitsAcc})
	MOVQ(l.n, Mem{Base: b, Disp: bitsN})
	MOVQ(l.p, Mem{Base: b, Disp: bitsAt})
}

// check goes to a label if the lane is beyond the end of its data.
func (l *lane) check(beyond string) {
	t := GP64()
	MOVBLZX(l.n.As8(), l.n.As32())
	MOVQ(l.p, t)
	SUBQ(l.param("data"), t)
	SHLQ(U8(3), t)
	SUBQ(l.n, t)
	CMPQ(t, l.param("end"))
	JG(LabelRef(beyond))
}

// begin sets the lane to the first unit of an MCU, next to the one behind.
func (l *lane) begin() {
	t := GP64()
	MOVQ(l.param("units"), t)
	MOVQ(t, l.unit)
}

func (l *lane) next() { ADDQ(U8(unitBytes), l.unit) }

// refill is bits.refill.
func (l *lane) refill() {
	t := GP64()
	MOVBLZX(l.n.As8(), l.n.As32())
	MOVQ(Mem{Base: l.p}, t)
	BSWAPQ(t)
	SHRXQ(l.n, t, t)
	ORQ(t, l.acc)
	MOVL(l.n.As32(), t.As32())
	SHRL(U8(3), t.As32())
	ADDQ(U8(7), l.p)
	SUBQ(t, l.p)
	ORL(U8(56), l.n.As32())
}

// drop passes over as many bits as the lowest byte of e says.
func (l *lane) drop(e reg.GPVirtual) {
	SHLXQ(e, l.acc, l.acc)
	SUBQ(e, l.n)
}

// value is the value that follows the code of entry e.
func (l *lane) value(e reg.GPVirtual) reg.GPVirtual {
	v, sign, shift := GP64(), GP64(), GP64()
	MOVL(e.As32(), shift.As32())
	SHRL(U8(8), shift.As32())
	SHLXQ(shift, l.acc, v)
	MOVQ(v, sign)
	SARQ(U8(63), sign)
	NOTQ(sign)
	XORQ(sign, v)
	SHRQ(U8(1), v)
	SHRL(U8(8), shift.As32())
	SHRXQ(shift, v, v)
	XORQ(sign, v)
	SUBQ(sign, v)
	return v
}

// block sets the lane to its unit's block, decodes the difference of the first coefficient and returns the table of the
// others if it is asked to.
func (l *lane) block(id string, rest bool) (ac reg.GPVirtual) {
	unit, pred, dc, e := GP64(), GP64(), GP64(), GP64()
	l.refill()
	MOVQ(l.unit, unit)
	MOVQ(Mem{Base: unit, Disp: unitPredictor}, pred)
	MOVQ(Mem{Base: pred, Disp: predictorDC}, dc)
	MOVQ(l.acc, e)
	SHRQ(U8(64-dcBits), e)
	MOVL(Mem{Base: dc, Index: e, Scale: 4}, e.As32())
	TESTL(e.As32(), e.As32())
	JNZ(LabelRef(id + "dc"))
	l.find(id+"dc", dc, dcLong, dcBits, e, func(symbol, size, move reg.GPVirtual) {
		MOVL(symbol.As32(), size.As32())
		MOVL(U32(1), move.As32())
	})
	Label(id + "dc")
	v := l.value(e)
	ADDL(Mem{Base: pred, Disp: predictorLast}, v.As32())
	MOVL(v.As32(), Mem{Base: pred, Disp: predictorLast})
	l.drop(e)
	if l.stores {
		l.aim(unit)
	}
	MOVL(U32(1), l.k.As32())
	if rest {
		ac = GP64()
		MOVQ(Mem{Base: pred, Disp: predictorAC}, ac)
	}
	return ac
}

// aim sets out to the block of a unit of MCU m.
func (l *lane) aim(unit reg.GPVirtual) {
	MOVQ(param("m"), l.out)
	IMULQ(Mem{Base: unit, Disp: unitStep}, l.out)
	ADDQ(Mem{Base: unit, Disp: unitCell}, l.out)
	SHLQ(U8(7), l.out)
	ADDQ(l.param("cells"), l.out)
}

// find is longCodes.find of codes longer than bits, for the code at the top of acc; size tells what its symbol means.
// It goes to label have with the entry in e.
func (l *lane) find(have string, table reg.GPVirtual, at, bits int, e reg.GPVirtual, size func(symbol, size, move reg.GPVirtual)) {
	code, n := GP64(), GP64()
	long := func(what int) Mem { return Mem{Base: table, Disp: at + what} }
	scaled := func(what int) Mem { return Mem{Base: table, Disp: at + what, Index: e, Scale: 4} }
	MOVL(U32(bits+1), e.As32())
	Label(have + "longer")
	MOVL(U32(64), n.As32())
	SUBL(e.As32(), n.As32())
	SHRXQ(n, l.acc, code)
	CMPL(code.As32(), scaled(longLast))
	JLE(LabelRef(have + "found"))
	INCL(e.As32())
	CMPL(e.As32(), U8(17))
	JNE(LabelRef(have + "longer"))
	MOVB(U8(1), long(longMissed)) // symbol 0, of 17 bits
	XORL(code.As32(), code.As32())
	JMP(LabelRef(have + "symbol"))
	Label(have + "found")
	ADDL(scaled(longOffset), code.As32())
	MOVBLZX(code.As8(), code.As32())
	MOVBLZX(Mem{Base: table, Disp: at + longSymbols, Index: code, Scale: 1}, code.As32())
	Label(have + "symbol")
	makeEntry(e, code, size)
	JMP(LabelRef(have))
}

// makeEntry turns the length of a code, in e, and its symbol into an entry.
func makeEntry(e, symbol reg.GPVirtual, size func(symbol, size, move reg.GPVirtual)) {
	n, move := GP64(), GP64()
	size(symbol, n, move)
	SHLL(U8(24), move.As32())
	MOVL(e.As32(), symbol.As32())
	SHLL(U8(8), symbol.As32())
	ORL(symbol.As32(), move.As32())
	ADDL(n.As32(), e.As32())
	ORL(move.As32(), e.As32())
	XORL(U8(63), n.As32())
	SHLL(U8(16), n.As32())
	ORL(n.As32(), e.As32())
}

// runSize is what the symbol of an AC code means. id is of the labels.
func runSize(id string) func(symbol, size, move reg.GPVirtual) {
	return func(symbol, size, move reg.GPVirtual) {
		MOVL(symbol.As32(), size.As32())
		MOVL(symbol.As32(), move.As32())
		SHRL(U8(4), move.As32())
		INCL(move.As32())
		ANDL(U8(15), size.As32())
		JNZ(LabelRef(id + "sized"))
		CMPL(move.As32(), U8(16))
		JE(LabelRef(id + "sized"))
		MOVL(U32(endOfBlock), move.As32())
		Label(id + "sized")
	}
}

// lookUp is up to two symbols of one look-up. It goes to a label with e where the block ends, which has not dropped
// their bits yet, or where not even one symbol fits.
func (l *lane) lookUp(ac, e reg.GPVirtual, end, miss string) {
	i, t := GP64(), GP64()
	field := func(at int) Mem { return Mem{Base: ac, Index: i, Scale: 8, Disp: at} }
	MOVQ(l.acc, i)
	SHRQ(U8(64-acBits), i)
	MOVQ(field(0), e)
	TESTL(e.As32(), e.As32())
	JZ(LabelRef(miss))
	MOVBLZX(field(1), t.As32())
	ADDL(l.k.As32(), t.As32())
	MOVBLZX(field(4), l.k.As32())
	ADDL(t.As32(), l.k.As32())
	if l.stores {
		v := GP64()
		MOVBLZX(Mem{Base: ac, Index: t, Scale: 1, Disp: acPlace}, t.As32())
		RORXQ(U8(16), e, v)
		MOVW(v.As16(), Mem{Base: l.out, Index: t, Scale: 2})
		MOVBLZX(Mem{Base: ac, Index: l.k, Scale: 1, Disp: acPlace}, t.As32())
		RORXQ(U8(48), e, v)
		MOVW(v.As16(), Mem{Base: l.out, Index: t, Scale: 2})
	}
	CMPL(l.k.As32(), U8(64))
	JCC(LabelRef(end))
	l.drop(e)
}

// end is where a pair of symbols has ended the block: the second one counts only if the first did not.
func (l *lane) end(id string, e reg.GPVirtual) {
	n, k := GP64(), GP64()
	Label(id)
	RORXQ(U8(32), e, n)
	MOVBLZX(n.As8(), n.As32())
	MOVL(l.k.As32(), k.As32())
	SUBL(n.As32(), k.As32())
	RORXQ(U8(40), e, n)
	CMPL(k.As32(), U8(64))
	CMOVLCC(k.As32(), l.k.As32())
	CMOVQCS(e, n)
	l.drop(n)
	if !l.stores {
		return
	}
	l.finish(id+"ended", func() { // the length tells which symbol was the last
		v := GP64()
		RORXQ(U8(48), e, v)
		CMPB(n.As8(), e.As8())
		JEQ(LabelRef(id + "second"))
		RORXQ(U8(16), e, v)
		Label(id + "second")
		MOVW(v.As16(), Mem{Base: l.out, Disp: 2 * 63})
	})
}

// finish stores the first coefficient, and calls overrun, as package jpeg's function of that name, where the block's
// last position is past its end.
func (l *lane) finish(id string, overrun func()) {
	t := GP64()
	LEAL(Mem{Base: l.k, Disp: -65}, t.As32())
	CMPL(t.As32(), U8(endOfBlock-64))
	JCC(LabelRef(id))
	overrun()
	Label(id)
	MOVQ(l.unit, t)
	MOVQ(Mem{Base: t, Disp: unitPredictor}, t)
	MOVL(Mem{Base: t, Disp: predictorLast}, t.As32())
	MOVW(t.As16(), Mem{Base: l.out})
}

// miss reads one symbol that does not fit into a look-up. It goes to label again, or to done if the block ends.
func (l *lane) miss(id string, ac reg.GPVirtual, again, done string) {
	e, t := GP64(), GP64()
	Label(id)
	l.refill()
	MOVQ(l.acc, e)
	SHRQ(U8(64-acBits), e)
	MOVL(Mem{Base: ac, Index: e, Scale: 4, Disp: acEntries}, e.As32())
	TESTL(e.As32(), e.As32())
	JNZ(LabelRef(id + "ac"))
	l.find(id+"ac", ac, acLong, acBits, e, runSize(id))
	Label(id + "ac")
	var v reg.GPVirtual
	if l.stores {
		v = l.value(e)
	}
	MOVL(e.As32(), t.As32())
	SHRL(U8(24), t.As32())
	ADDL(t.As32(), l.k.As32())
	l.drop(e)
	if l.stores {
		MOVBLZX(Mem{Base: ac, Index: l.k, Scale: 1, Disp: acPlace}, t.As32())
		MOVW(v.As16(), Mem{Base: l.out, Index: t, Scale: 2})
	}
	CMPL(l.k.As32(), U8(64))
	JCS(LabelRef(again))
	if l.stores {
		l.finish(id+"over", func() { MOVW(v.As16(), Mem{Base: l.out, Disp: 2 * 63}) })
	}
	JMP(LabelRef(done))
}

// rest decodes all coefficients but the first and goes to label done.
func (l *lane) rest(id string, ac reg.GPVirtual, done string) {
	e := GP64()
	Label(id)
	l.refill()
	for range lookUps {
		l.lookUp(ac, e, id+"end", id+"miss")
	}
	JMP(LabelRef(id))
	l.end(id+"end", e)
	JMP(LabelRef(done))
	l.miss(id+"miss", ac, id, done)
}
