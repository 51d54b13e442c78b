// Command deflate writes the assembly of package png that decodes the symbols of deflated data. It does what decompressor.decodeUntil does, as long
// as neither data nor the block end. Run it through `go generate` in package png.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// What it knows of package png, where a test compares it.
const (
	literalRoot, distanceRoot = 12, 9

	distancesAt = 4 * (1<<literalRoot + 2048) // in codeTables

	literalShift = 6      // of an entry: how many literals there are
	literalMask  = 3 << 6 // the bits of that
	tableBit     = 30     // says that there is a further table, where bit 31 is set
	lookUps      = 4      // of literalRoot bits, which a refill has bits for
)

func main() {
	ConstraintExpr("!purego")
	symbols()
	Generate()
}

// loop is what the loop has in registers. Of bits only the lowest 6 count between one refill and the next.
type loop struct {
	acc, bits, in, out, tables GPVirtual
	e                          GPVirtual // the entry of the next bits
	acc0, bits0                GPVirtual // acc and bits in front of a match
	safe, start, limit         Mem       // in may be at safe at most, out is below limit
}

func symbols() {
	TEXT("symbolLoop", NOSPLIT,
		"func(tables *uint32, src *byte, safe int, window *byte, limit int, acc uint64, bits uint, at, w int) (newAcc uint64, newBits uint, newAt, newW int)")
	Doc("symbolLoop decodes symbols while at is at most safe and w below limit. It stops in front of one that is neither a literal nor a match, and of a",
		"match from before the window. It reads up to 22 bytes from src[safe] on, and writes up to 296 from window[limit] on.")
	Pragma("noescape")
	l := load()
	l.check()
	l.refill()
	l.lookUp()
	Label("loop")
	for i := range lookUps {
		TESTB(U8(literalMask), l.e.As8())
		JZ(LabelRef([...]string{"match", "other"}[min(i, 1)]))
		l.literal()
	}
	Label("next")
	l.check()
	l.refill()
	JMP(LabelRef("loop"))
	l.match()
	l.further()
	Label("undo")
	MOVQ(l.acc0, l.acc)
	MOVQ(l.bits0, l.bits)
	Label("exit")
	l.store()
}

// load takes the parameters.
func load() *loop {
	l := &loop{acc: GP64(), bits: GP64(), in: GP64(), out: GP64(), tables: GP64(), e: GP64(), acc0: GP64(), bits0: GP64()}
	l.safe, l.start, l.limit = AllocLocal(8), AllocLocal(8), AllocLocal(8)
	t := GP64()
	Load(Param("tables"), l.tables)
	Load(Param("src"), l.in)
	Load(Param("safe"), t)
	ADDQ(l.in, t)
	MOVQ(t, l.safe)
	t = GP64()
	Load(Param("at"), t)
	ADDQ(t, l.in)
	Load(Param("window"), l.out)
	MOVQ(l.out, l.start)
	t = GP64()
	Load(Param("limit"), t)
	ADDQ(l.out, t)
	MOVQ(t, l.limit)
	t = GP64()
	Load(Param("w"), t)
	ADDQ(t, l.out)
	Load(Param("acc"), l.acc)
	Load(Param("bits"), l.bits)
	return l
}

// store returns the results.
func (l *loop) store() {
	ANDL(U8(63), l.bits.As32())
	t := GP64()
	Load(Param("src"), t)
	SUBQ(t, l.in)
	SUBQ(l.start, l.out)
	Store(l.acc, Return("newAcc"))
	Store(l.bits, Return("newBits"))
	Store(l.in, Return("newAt"))
	Store(l.out, Return("newW"))
	VZEROUPPER()
	RET()
}

// check goes to label exit where data or window end.
func (l *loop) check() {
	CMPQ(l.in, l.safe)
	JHI(LabelRef("exit"))
	CMPQ(l.out, l.limit)
	JCC(LabelRef("exit"))
}

// refill makes at least 56 bits count; all of acc are data.
func (l *loop) refill() {
	t := GP64()
	ANDL(U8(63), l.bits.As32())
	MOVQ(Mem{Base: l.in}, t)
	SHLXQ(l.bits, t, t)
	ORQ(t, l.acc)
	MOVL(l.bits.As32(), t.As32())
	SHRL(U8(3), t.As32())
	ADDQ(U8(7), l.in)
	SUBQ(t, l.in)
	ORL(U8(56), l.bits.As32())
}

// lookUp makes e the entry of the next bits.
func (l *loop) lookUp() {
	i := GP64()
	MOVL(l.acc.As32(), i.As32())
	ANDL(U32(1<<literalRoot-1), i.As32())
	MOVL(Mem{Base: l.tables, Index: i, Scale: 4}, l.e.As32())
}

// drop drops the bits of e.
func (l *loop) drop() {
	SHRXQ(l.e, l.acc, l.acc)
	SUBQ(l.e, l.bits)
}

// literal takes the literals of e, and looks up what follows.
func (l *loop) literal() {
	values, n := GP64(), GP64()
	SHRXQ(l.e, l.acc, l.acc)
	MOVL(l.e.As32(), values.As32())
	SUBQ(l.e, l.bits)
	MOVBLZX(l.e.As8(), n.As32())
	l.lookUp()
	SHRL(U8(8), values.As32())
	SHRL(U8(literalShift), n.As32())
	MOVL(values.As32(), Mem{Base: l.out})
	ADDQ(n, l.out)
}

// shifted is e shifted right.
func (l *loop) shifted(n int) GPVirtual {
	t := GP64()
	MOVL(l.e.As32(), t.As32())
	SHRL(U8(n), t.As32())
	return t
}

// value is the base of e, from bit at on, with what the bits behind the code add to it.
func (l *loop) value(at int) GPVirtual {
	v := GP64()
	BZHIQ(l.e, l.acc, v)
	SHRXQ(l.shifted(8), v, v)
	ADDQ(l.shifted(at), v)
	return v
}

// entryOf makes e the entry of the further table that it names, behind the root bits at the start of acc.
func (l *loop) entryOf(at, root int) {
	behind, size, i := GP64(), l.shifted(8), l.shifted(14)
	MOVQ(l.acc, behind)
	SHRQ(U8(root), behind)
	ANDL(U8(15), size.As32())
	BZHIQ(size, behind, behind)
	ANDL(U32(0x3fff), i.As32())
	ADDL(behind.As32(), i.As32())
	MOVL(Mem{Base: l.tables, Index: i, Scale: 4, Disp: at}, l.e.As32())
}

// further takes entries that lie in further tables. Where there are none, loop ends.
func (l *loop) further() {
	Label("otherTable")
	BTL(U8(tableBit), l.e.As32())
	JCC(LabelRef("exit"))
	l.entryOf(0, literalRoot)
	TESTL(l.e.As32(), l.e.As32())
	JS(LabelRef("exit"))
	SHRQ(U8(literalRoot), l.acc)
	SUBQ(U8(literalRoot), l.bits)
	TESTB(U8(literalMask), l.e.As8())
	JZ(LabelRef("length"))
	l.literal()
	JMP(LabelRef("next"))

	Label("distanceTable")
	BTL(U8(tableBit), l.e.As32())
	JCC(LabelRef("undo"))
	l.entryOf(distancesAt, distanceRoot)
	TESTL(l.e.As32(), l.e.As32())
	JS(LabelRef("undo"))
	SHRQ(U8(distanceRoot), l.acc)
	SUBQ(U8(distanceRoot), l.bits)
	JMP(LabelRef("distance"))
}

// match takes a match, and looks up what follows before it copies.
func (l *loop) match() {
	Label("other")
	l.refill()
	Label("match")
	MOVQ(l.acc, l.acc0)
	MOVQ(l.bits, l.bits0)
	TESTL(l.e.As32(), l.e.As32())
	JS(LabelRef("otherTable"))
	Label("length")
	length := l.value(16)
	l.drop()
	i := GP64()
	MOVL(l.acc.As32(), i.As32())
	ANDL(U32(1<<distanceRoot-1), i.As32())
	MOVL(Mem{Base: l.tables, Index: i, Scale: 4, Disp: distancesAt}, l.e.As32())
	TESTL(l.e.As32(), l.e.As32())
	JS(LabelRef("distanceTable"))
	Label("distance")
	distance, from := l.value(14), GP64()
	MOVQ(l.out, from)
	SUBQ(distance, from)
	CMPQ(from, l.start)
	JCS(LabelRef("undo"))
	l.drop()
	l.lookUp()
	l.refill()
	l.copy(length, distance, from)
}

// copy copies length bytes to out, and up to 31 more.
func (l *loop) copy(length, distance, from GPVirtual) {
	i, v := GP64(), YMM()
	part := func(base Register) Mem { return Mem{Base: base, Index: i, Scale: 1} }
	again := func(label string) {
		CMPQ(i, length)
		JCS(LabelRef(label))
	}
	CMPQ(distance, U8(32))
	JCS(LabelRef("near"))
	VMOVDQU(Mem{Base: from}, v)
	VMOVDQU(v, Mem{Base: l.out})
	CMPQ(length, U8(32))
	JHI(LabelRef("long"))
	Label("copied")
	ADDQ(length, l.out)
	l.check()
	JMP(LabelRef("loop"))

	Label("long")
	MOVL(U32(32), i.As32())
	Label("longPart")
	VMOVDQU(part(from), v)
	VMOVDQU(v, part(l.out))
	ADDQ(U8(32), i)
	again("longPart")
	JMP(LabelRef("copied"))

	Label("near")
	XORL(i.As32(), i.As32())
	CMPQ(distance, U8(1))
	JEQ(LabelRef("run"))
	CMPQ(distance, U8(16))
	JCS(LabelRef("nearPart"))
	MOVL(U32(16), distance.As32())
	Label("nearPart") // what is loaded behind the first bytes was not written yet: the next turn writes it again
	VMOVDQU(part(from), v.AsX())
	VMOVDQU(v.AsX(), part(l.out))
	ADDQ(distance, i)
	again("nearPart")
	JMP(LabelRef("copied"))

	Label("run")
	VPBROADCASTB(Mem{Base: from}, v)
	Label("runPart")
	VMOVDQU(v, part(l.out))
	ADDQ(U8(32), i)
	again("runPart")
	JMP(LabelRef("copied"))
}
