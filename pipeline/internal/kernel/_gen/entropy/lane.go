package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// lane is the registers and parameters of one lane. Of n only the lowest byte counts between one refill and the next.
type lane struct {
	suffix    string // of its parameters
	stores    bool
	acc, n, p reg.GPVirtual // as bits, p for at
	place     Mem           // of p, if it has no register
	k, out, e reg.GPVirtual // position in the block, the block, the pair that is next
	last      reg.GPVirtual // the last value of a pair
	unit      Mem           // at hand, or that is next once its block has begun
	pred, dc  Mem           // of that one: to load them when its block begins would be to wait
	first     Mem           // the first coefficient of the block
}

func newLane(suffix string, stores bool) *lane {
	return &lane{
		suffix: suffix, stores: stores, acc: GP64(), n: GP64(), p: GP64(), k: GP64(), out: GP64(), e: GP64(), last: GP64(),
		unit: AllocLocal(8), pred: AllocLocal(8), dc: AllocLocal(8), first: AllocLocal(8),
	}
}

func (l *lane) param(name string) Mem { return asm.Param(name + l.suffix) }

// load takes the lane's bits from memory.
func (l *lane) load() {
	b := GP64()
	MOVQ(l.param("bits"), b)
	MOVQ(Mem{Base: b, Disp: bitsAcc}, l.acc)
	MOVQ(Mem{Base: b, Disp: bitsN}, l.n)
	MOVQ(Mem{Base: b, Disp: bitsAt}, b)
	ADDQ(l.param("data"), b)
	l.setAt(b)
}

// at is p, for setAt to set it.
func (l *lane) at() reg.GPVirtual {
	if l.p != nil {
		return l.p
	}
	t := GP64()
	MOVQ(l.place, t)
	return t
}

func (l *lane) setAt(p reg.GPVirtual) {
	switch {
	case l.p == nil:
		MOVQ(p, l.place)
	case p != l.p:
		MOVQ(p, l.p)
	}
}

// save puts the lane's bits back.
func (l *lane) save() {
	b := GP64()
	MOVQ(l.param("bits"), b)
	MOVBLZX(l.n.As8(), l.n.As32())
	p := l.at()
	SUBQ(l.param("data"), p)
	MOVQ(l.acc, Mem{Base: b, Disp: bitsAcc})
	MOVQ(l.n, Mem{Base: b, Disp: bitsN})
	MOVQ(p, Mem{Base: b, Disp: bitsAt})
}

// check goes to a label if the lane is beyond the end of its data.
func (l *lane) check(beyond string) {
	t := GP64()
	MOVBLZX(l.n.As8(), l.n.As32())
	MOVQ(l.at(), t)
	SUBQ(l.param("data"), t)
	SHLQ(U8(3), t)
	SUBQ(l.n, t)
	CMPQ(t, l.param("end"))
	JG(LabelRef(beyond))
}

// begin sets the lane to the first unit of an MCU.
func (l *lane) begin() {
	t := GP64()
	MOVQ(l.param("units"), t)
	l.move(t)
}

// move sets the lane to a unit.
func (l *lane) move(unit reg.GPVirtual) {
	MOVQ(unit, l.unit)
	MOVQ(Mem{Base: unit, Disp: unitPredictor}, unit)
	MOVQ(unit, l.pred)
	MOVQ(Mem{Base: unit, Disp: predictorDC}, unit)
	MOVQ(unit, l.dc)
}

// refill is bits.refill.
func (l *lane) refill() {
	t, p := GP64(), l.at()
	MOVQ(Mem{Base: p}, t)
	BSWAPQ(t)
	SHRXQ(l.n, t, t)
	ORQ(t, l.acc)
	MOVBLZX(l.n.As8(), l.n.As32())
	MOVL(l.n.As32(), t.As32())
	SHRL(U8(3), t.As32())
	ADDQ(U8(7), p)
	SUBQ(t, p)
	l.setAt(p)
	ORL(U8(56), l.n.As32())
}

// drop passes over as many bits as the lowest byte of e says.
func (l *lane) drop(e reg.GPVirtual) {
	SHLXQ(e, l.acc, l.acc)
	SUBQ(e, l.n)
}

// value is the value that follows the code of entry e.
func (l *lane) value(e reg.GPVirtual) reg.GPVirtual {
	v, sign := GP64(), GP64()
	RORXL(U8(8), e.As32(), sign.As32())
	SHLXQ(sign, l.acc, v)
	MOVQ(v, sign)
	SARQ(U8(63), sign)
	NOTQ(sign)
	XORQ(sign, v)
	SHRQ(U8(1), v)
	RORXL(U8(16), e.As32(), e.As32())
	SHRXQ(e, v, v)
	RORXL(U8(16), e.As32(), e.As32())
	XORQ(sign, v)
	SUBQ(sign, v)
	return v
}

// block begins the block of the lane's unit: it decodes the difference of the first coefficient, moves the lane to the next unit, where left tells how
// many the MCU still has, and returns the table of the other coefficients if it is asked to.
func (l *lane) block(id string, left Mem, rest bool) (ac reg.GPVirtual) {
	unit, pred, dc, e := GP64(), GP64(), GP64(), GP64()
	MOVQ(l.pred, pred)
	MOVQ(l.dc, dc)
	MOVQ(l.acc, e)
	SHRQ(U8(64-dcBits), e)
	MOVL(Mem{Base: dc, Index: e, Scale: 4}, e.As32())
	l.refill()
	TESTL(e.As32(), e.As32())
	JNZ(LabelRef(id + "dc"))
	l.find(id+"dc", dc, dcLong, dcBits, e, func(symbol, size reg.GPVirtual) {
		MOVL(symbol.As32(), size.As32())
		MOVL(U32(1), symbol.As32())
	})
	Label(id + "dc")
	v := l.value(e)
	ADDL(Mem{Base: pred, Disp: predictorLast}, v.As32())
	MOVL(v.As32(), Mem{Base: pred, Disp: predictorLast})
	l.drop(e)
	if rest {
		ac = GP64()
		MOVQ(Mem{Base: pred, Disp: predictorAC}, ac)
	}
	MOVQ(l.unit, unit)
	if l.stores {
		MOVL(v.As32(), l.first)
		l.aim(unit)
	}
	MOVL(U32(1), l.k.As32())
	ADDQ(U8(unitBytes), unit)
	CMPQ(left, U8(1))
	CMOVQEQ(l.param("units"), unit)
	l.move(unit)
	return ac
}

// aim sets out to the block of a unit of MCU m.
func (l *lane) aim(unit reg.GPVirtual) {
	MOVQ(asm.Param("m"), l.out)
	IMULQ(Mem{Base: unit, Disp: unitStep}, l.out)
	ADDQ(Mem{Base: unit, Disp: unitCell}, l.out)
	SHLQ(U8(7), l.out)
	ADDQ(l.param("cells"), l.out)
}

// find is longCodes.find of codes longer than bits, for the code at the top of acc; size tells what its symbol means.
// It goes to label have with the entry in e.
func (l *lane) find(have string, table reg.GPVirtual, at, bits int, e reg.GPVirtual, size func(symbol, size reg.GPVirtual)) {
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

// makeEntry turns the length of a code, in e, and its symbol into an entry. It uses up the symbol, which size turns into its move.
func makeEntry(e, symbol reg.GPVirtual, size func(symbol, size reg.GPVirtual)) {
	n := GP64()
	size(symbol, n)
	IMUL3L(U32(1<<8+1), e.As32(), e.As32())
	ADDL(n.As32(), e.As32())
	XORL(U8(63), n.As32())
	SHLL(U8(16), n.As32())
	ORL(n.As32(), e.As32())
	SHLL(U8(24), symbol.As32())
	ORL(symbol.As32(), e.As32())
}

// runSize is what the symbol of an AC code means. id is of the labels.
func runSize(id string) func(symbol, size reg.GPVirtual) {
	return func(symbol, size reg.GPVirtual) {
		MOVL(symbol.As32(), size.As32())
		SHRL(U8(4), symbol.As32())
		INCL(symbol.As32())
		ANDL(U8(15), size.As32())
		JNZ(LabelRef(id + "sized"))
		CMPL(symbol.As32(), U8(16))
		JE(LabelRef(id + "sized"))
		MOVL(U32(endOfBlock), symbol.As32())
		Label(id + "sized")
	}
}

// look loads the lane's entry, a pair.
func (l *lane) look(ac reg.GPVirtual) {
	MOVQ(l.acc, l.e)
	SHRQ(U8(pairShift()), l.e)
	ANDL(U32(8<<width-8), l.e.As32())
	MOVQ(Mem{Base: ac, Index: l.e, Scale: 1}, l.e)
}

// lookUp is up to two symbols, those of the lane's pair, and loads the next one. It goes to label id+"miss" where not even one symbol fits, and to
// id+"end" where the block ends. It has not dropped any bits there.
func (l *lane) lookUp(id string, ac reg.GPVirtual) {
	i, t, u, v := GP64(), GP64(), GP64(), l.last
	TESTL(l.e.As32(), l.e.As32())
	JZ(LabelRef(id + "miss"))
	SHRXQ(l.e, l.acc, i) // what comes behind the pair, as soon as it can be known
	ANDL(U32(8<<width-8), i.As32())
	LEAL(Mem{Base: l.e, Disp: 64 - pairShift()}, v.As32()) // where the last value starts, and its length
	BEXTRQ(v, l.acc, v)
	RORXQ(U8(48), l.e, t)
	ADDL(t.As32(), v.As32())
	RORXQ(U8(16), l.e, t)
	MOVBLZX(t.As8(), t.As32())
	ADDL(t.As32(), l.k.As32())
	RORXQ(U8(32), l.e, t)
	MOVBLSX(t.As8(), t.As32())
	ADDL(l.k.As32(), t.As32())
	MOVBLZX(Mem{Base: ac, Index: t, Scale: 1, Disp: acPlace}, t.As32())
	RORXQ(U8(40), l.e, u)
	MOVBLSX(u.As8(), u.As32())
	MOVW(u.As16(), Mem{Base: l.out, Index: t, Scale: 2})
	MOVBLZX(Mem{Base: ac, Index: l.k, Scale: 1, Disp: acPlace}, t.As32())
	MOVW(v.As16(), Mem{Base: l.out, Index: t, Scale: 2})
	CMPL(l.k.As32(), U8(64))
	JCC(LabelRef(id + "end"))
	l.dropPair()
	MOVQ(Mem{Base: ac, Index: i, Scale: 1}, l.e)
}

// dropPair passes over the bits of the pair.
func (l *lane) dropPair() {
	n := GP64()
	RORXQ(U8(24), l.e, n)
	l.drop(n)
}

// end is where a pair of symbols has ended the block. Where it was the first one, the second one is not of this block: then the first one is read again,
// as a miss.
func (l *lane) end(id string, ac reg.GPVirtual, again, done string) {
	move, k := GP64(), GP64()
	Label(id + "end")
	RORXQ(U8(32), l.e, move)
	MOVBLSX(move.As8(), move.As32())
	LEAL(Mem{Base: l.k, Index: move, Scale: 1, Disp: -64}, k.As32())
	NOTL(k.As32())
	TESTL(k.As32(), move.As32())
	JMI(LabelRef(id + "before"))
	l.dropPair()
	l.finish(id+"ended", l.last)
	JMP(LabelRef(done))
	Label(id + "before")
	RORXQ(U8(16), l.e, move)
	MOVBLZX(move.As8(), move.As32())
	SUBL(move.As32(), l.k.As32())
	l.single(ac, l.e)
	SHLQ(U8(32), l.e)
	Label(id + "miss")
	SHRQ(U8(32), l.e)
	l.miss(id, ac, l.e, done)
	l.look(ac)
	JMP(LabelRef(again))
}

// single loads the entry of one symbol.
func (l *lane) single(ac, e reg.GPVirtual) {
	MOVQ(l.acc, e)
	SHRQ(U8(64-width), e)
	MOVL(Mem{Base: ac, Index: e, Scale: 4, Disp: acEntries}, e.As32())
}

// finish stores the first coefficient, and as package jpeg's function overrun the last value v, where the block's last position is past its end.
func (l *lane) finish(id string, v reg.GPVirtual) {
	t := GP64()
	LEAL(Mem{Base: l.k, Disp: -65}, t.As32())
	CMPL(t.As32(), U8(endOfBlock-64))
	JCC(LabelRef(id))
	MOVW(v.As16(), Mem{Base: l.out, Disp: 2 * 63})
	Label(id)
	MOVL(l.first, t.As32())
	MOVW(t.As16(), Mem{Base: l.out})
}

// miss reads one symbol, whose entry is e, and refills the lane. It goes to label done if the block ends.
func (l *lane) miss(id string, ac, e reg.GPVirtual, done string) {
	l.refill()
	TESTL(e.As32(), e.As32())
	JNZ(LabelRef(id + "ac"))
	l.find(id+"ac", ac, acLong, width, e, runSize(id))
	Label(id + "ac")
	var v reg.GPVirtual
	if l.stores {
		v = l.value(e)
	}
	t := GP64()
	MOVL(e.As32(), t.As32())
	SHRL(U8(24), t.As32())
	ADDL(t.As32(), l.k.As32())
	l.drop(e)
	if l.stores {
		MOVBLZX(Mem{Base: ac, Index: l.k, Scale: 1, Disp: acPlace}, t.As32())
		MOVW(v.As16(), Mem{Base: l.out, Index: t, Scale: 2})
	}
	CMPL(l.k.As32(), U8(64))
	if !l.stores {
		JCC(LabelRef(done))
		return
	}
	JCS(LabelRef(id + "on"))
	l.finish(id+"over", v)
	JMP(LabelRef(done))
	Label(id + "on")
}

// rest decodes all coefficients but the first, from a pair that is loaded, and goes to label done.
func (l *lane) rest(id string, ac reg.GPVirtual, done string) {
	Label(id)
	l.refill()
	for range lookUps {
		l.lookUp(id, ac)
	}
	JMP(LabelRef(id))
	l.end(id, ac, id, done)
}
