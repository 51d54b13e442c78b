package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// What it knows of package vp8l, where a test compares it.
const (
	green, red, blue, alpha = 0, 1, 2, 3

	rootBits  = 8
	greenBits = 9
	restBits  = 10

	jointRest  = 4 << greenBits // in a joint
	jointBlues = jointRest + 4<<restBits
	jointRoots = jointBlues + 4<<rootBits
	jointBytes = jointRoots + 4*4

	isLiteral = 2048 << 16 // in greens, where the highest bit says that a code is long

	restLacksBlue = 0x80
	restLacksAll  = 0x40

	firstCopy  = 256 << 16 // in other entries
	firstCache = (256 + 24) << 16
	hash       = 0x1e35a7bd
)

// A block is what is read at once: one refill for each two pixels has bits enough, if another one follows what is long. The margin is what four of them for
// each pixel may look at.
const (
	block  = 4
	margin = 8 + 4*block*7
)

// reading is the registers and parameters of readLiterals. The bits begin with the third one of acc: masked, they are places in tables of 4 bytes. Count
// counts the two below as well; only its lowest six bits count.
type reading struct {
	acc, count, p       GPVirtual
	joint, pix, x       GPVirtual
	colors, shift       GPVirtual
	e, v, t, u, b       GPVirtual
	none, entries, kept Mem
	last                Mem // part of the row
}

// literals reads pixels of a row.
func literals() {
	TEXT("readLiterals", NOSPLIT, "func(data *byte, size, from int, joints, none, entries, groupOf *uint32, groupBits int, colors *uint32, shift int, pix *uint32, x, w int) (n, at int)")
	Doc("readLiterals reads pixels x to w−1 of a row, each by a literal or by the cache of colors, into which it puts each, and returns how many, and where",
		"the bits of others begin: fewer where a copy comes next, or the last bytes of the data. From is the first bit, behind whose byte there are 119 more; of",
		"joints groupOf names that of each part of the row; none is that of a color; entries are those that joints name by their place. The cache's place of a",
		"color is above shift; behind 2048 places there are 256 that are looked at, and not used.")
	Pragma("noescape")
	s := &reading{acc: GP64(), count: GP64(), p: GP64(), joint: GP64(), pix: asm.Pointer("pix"), x: asm.Pointer("x"),
		colors: asm.Pointer("colors"), shift: asm.Pointer("shift"), e: GP64(), v: GP64(), t: GP64(), u: GP64(), b: GP64(),
		none: asm.Param("none"), entries: asm.Param("entries"), kept: AllocLocal(8), last: AllocLocal(8)}
	end, lastBlock := AllocLocal(8), AllocLocal(8)
	s.begin(end, lastBlock)
	Label("block")
	CMPQ(s.p, end)
	JG(LabelRef("done"))
	CMPQ(s.x, lastBlock)
	JG(LabelRef("single"))
	TESTL(U32(block-1), s.x.As32())
	JNE(LabelRef("single"))
	s.group()
	s.prefetch()
	for k := range block {
		s.pixel(k, fmt.Sprint(k), k%2 == 0)
	}
	ADDQ(U8(block), s.x)
	ADDQ(U8(4*block), s.pix)
	JMP(LabelRef("block"))
	Label("single") // up to the next block, or at the end of the row
	CMPQ(s.x, asm.Param("w"))
	JGE(LabelRef("done"))
	s.group()
	s.pixel(0, "Single", true)
	INCQ(s.x)
	ADDQ(U8(4), s.pix)
	JMP(LabelRef("block"))
	Label("done")
	s.done()
	for k := range block {
		s.outOfLine(k, fmt.Sprint(k))
	}
	s.outOfLine(0, "Single")
}

// begin reads the bits from a place on. End is where p may look at a block no more, lastBlock the last x of one.
func (s *reading) begin(end, lastBlock Mem) {
	MOVQ(asm.Param("w"), s.t)
	LEAQ(Mem{Base: s.t, Disp: -1}, s.u)
	MOVQ(asm.Param("groupBits"), s.b)
	SHRXQ(s.b, s.u, s.u)
	MOVQ(s.u, s.last)
	SUBQ(U8(block), s.t)
	MOVQ(s.t, lastBlock)
	MOVQ(asm.Param("data"), s.p)
	MOVQ(asm.Param("size"), s.t)
	LEAQ(Mem{Base: s.p, Index: s.t, Scale: 1, Disp: -margin}, s.t)
	MOVQ(s.t, end)
	MOVQ(asm.Param("from"), s.t)
	MOVQ(s.t, s.u)
	SHRQ(U8(3), s.u)
	ADDQ(s.u, s.p)
	XORL(s.acc.As32(), s.acc.As32())
	MOVL(U32(2), s.count.As32())
	s.refill()
	ANDL(U32(7), s.t.As32())
	s.drop(s.t)
}

// done returns.
func (s *reading) done() {
	SUBQ(asm.Param("pix"), s.pix)
	SHRQ(U8(2), s.pix)
	Store(s.pix, ReturnIndex(0))
	SUBQ(asm.Param("data"), s.p)
	ANDL(U32(63), s.count.As32())
	LEAQ(Mem{Base: s.p, Scale: 8, Index: s.p, Disp: 2}, s.t)
	SUBQ(s.p, s.t)
	SUBQ(s.count, s.t)
	Store(s.t, ReturnIndex(1))
	RET()
}

// group finds the joint of a pixel, and leaves its part in t.
func (s *reading) group() {
	MOVQ(asm.Param("groupBits"), s.u)
	SHRXQ(s.u, s.x, s.t)
	s.jointOf(s.joint)
}

// jointOf finds the joint of part t.
func (s *reading) jointOf(j GPVirtual) {
	MOVQ(asm.Param("groupOf"), s.u)
	MOVL(Mem{Base: s.u, Index: s.t, Scale: 4}, s.u.As32())
	IMUL3Q(U32(jointBytes), s.u, j)
	ADDQ(asm.Param("joints"), j)
}

// prefetch fetches a quarter of the joint of the part behind part t, for which the first cache has no room as long as parts are of other groups.
func (s *reading) prefetch() {
	const quarter = jointBlues / 4
	INCQ(s.t)
	CMPQ(s.t, s.last)
	CMOVQGT(s.last, s.t)
	s.jointOf(s.v)
	MOVQ(s.x, s.t)
	ANDQ(U8(3*block), s.t)
	IMUL3Q(U32(quarter/block), s.t, s.t)
	ADDQ(s.t, s.v)
	for line := 0; line < quarter; line += 64 {
		PREFETCHT0(Mem{Base: s.v, Disp: line})
	}
}

// refill is bitReader.refill, of 8 bytes that are there. It uses u.
func (s *reading) refill() {
	MOVQ(Mem{Base: s.p}, s.u)
	SHLXQ(s.count, s.u, s.u)
	ORQ(s.u, s.acc)
	MOVL(s.count.As32(), s.u.As32())
	NOTL(s.u.As32())
	SHRL(U8(3), s.u.As32())
	ANDL(U8(7), s.u.As32())
	ADDQ(s.u, s.p)
	ORL(U8(56), s.count.As32())
}

// drop takes the bits of an entry.
func (s *reading) drop(e GPVirtual) {
	SHRXQ(e, s.acc, s.acc)
	SUBL(e.As32(), s.count.As32())
}

// index makes t the place of the next bits in a table.
func (s *reading) index(bits int) {
	MOVL(s.acc.As32(), s.t.As32())
	ANDL(U32((1<<bits-1)<<2), s.t.As32())
}

// pixel reads one: green's entry, then one for all else, of none where the color is of the cache. No branch tells which it is.
func (s *reading) pixel(k int, name string, refill bool) {
	s.index(greenBits)
	MOVL(Mem{Base: s.joint, Index: s.t, Scale: 1}, s.e.As32())
	if refill {
		s.refill() // while the entry comes
	}
	TESTL(s.e.As32(), s.e.As32())
	JS(LabelRef("long" + name))
	Label("green" + name)
	s.drop(s.e)
	MOVQ(s.joint, s.b)
	TESTL(U32(isLiteral), s.e.As32())
	CMOVQEQ(s.none, s.b)
	s.index(restBits)
	MOVL(Mem{Base: s.b, Index: s.t, Scale: 1, Disp: jointRest}, s.v.As32())
	TESTB(U8(restLacksBlue), s.v.As8())
	JNE(LabelRef("lacking" + name))
	s.drop(s.v)
	Label("rest" + name)
	MOVL(s.e.As32(), s.t.As32())
	SHRL(U8(16), s.t.As32())
	MOVB(s.t.As8(), s.v.As8())
	RORXL(U8(24), s.v.As32(), s.v.As32())
	TESTL(U32(isLiteral), s.e.As32())
	CMOVLEQ(Mem{Base: s.colors, Index: s.t, Scale: 4}, s.v.As32())
	MOVL(s.v.As32(), Mem{Base: s.pix, Disp: 4 * k})
	IMUL3L(U32(hash), s.v.As32(), s.t.As32())
	SHRXL(s.shift.As32(), s.t.As32(), s.t.As32())
	MOVL(s.v.As32(), Mem{Base: s.colors, Index: s.t, Scale: 4})
}

// outOfLine is what seldom happens to a pixel.
func (s *reading) outOfLine(k int, name string) {
	s.longGreen(k, name)
	s.lacking(name)
	s.lackingAll(name)
}

// longGreen reads green by a further table, and is done at a copy.
func (s *reading) longGreen(k int, name string) {
	Label("long" + name)
	CMPB(s.e.As8(), U8(rootBits))
	JHI(LabelRef("further" + name))
	Label("copy" + name)
	if k > 0 {
		ADDQ(U8(4*k), s.pix)
	}
	JMP(LabelRef("done"))
	Label("further" + name)
	BTRL(U8(31), s.e.As32())
	s.further(green)
	LEAL(Mem{Base: s.e, Disp: -firstCopy}, s.t.As32())
	CMPL(s.t.As32(), U32(firstCache-firstCopy))
	JCS(LabelRef("copy" + name))
	s.refill()
	LEAL(Mem{Base: s.e, Disp: -firstCache}, s.t.As32())
	ADDL(U32(isLiteral), s.e.As32())
	CMPL(s.e.As32(), U32(isLiteral+firstCopy))
	CMOVLCC(s.t.As32(), s.e.As32())
	JMP(LabelRef("green" + name))
}

// lacking reads blue where all else is there.
func (s *reading) lacking(name string) {
	Label("lacking" + name)
	TESTB(U8(restLacksAll), s.v.As8())
	JNE(LabelRef("lackingAll" + name))
	s.drop(s.v)
	MOVQ(s.e, s.kept)
	s.index(rootBits)
	MOVL(Mem{Base: s.joint, Index: s.t, Scale: 1, Disp: jointBlues}, s.e.As32())
	s.refill()
	CMPB(s.e.As8(), U8(rootBits))
	JLS(LabelRef("blue" + name))
	s.further(blue)
	Label("blue" + name)
	s.add(24)
	MOVQ(s.kept, s.e)
	JMP(LabelRef("rest" + name))
}

// lackingAll reads red, blue and alpha one by one. They may take 45 bits, which are there behind a refill.
func (s *reading) lackingAll(name string) {
	Label("lackingAll" + name)
	s.refill()
	MOVQ(s.e, s.kept)
	XORL(s.v.As32(), s.v.As32())
	for _, c := range []struct{ code, shift int }{{red, 8}, {blue, 24}, {alpha, 16}} {
		short := fmt.Sprintf("short%s%d", name, c.code)
		s.index(rootBits)
		s.table(c.code)
		MOVL(Mem{Base: s.u, Index: s.t, Scale: 1}, s.e.As32())
		CMPB(s.e.As8(), U8(rootBits))
		JLS(LabelRef(short))
		s.further(c.code)
		Label(short)
		s.add(c.shift)
	}
	s.refill()
	MOVQ(s.kept, s.e)
	JMP(LabelRef("rest" + name))
}

// add takes an entry's bits, and adds its symbol to v.
func (s *reading) add(shift int) {
	s.drop(s.e)
	SHRL(U8(16), s.e.As32())
	SHLL(U8(shift), s.e.As32())
	ORL(s.e.As32(), s.v.As32())
}

// table makes u the place of a code's tables.
func (s *reading) table(code int) {
	MOVL(Mem{Base: s.joint, Disp: jointRoots + 4*code}, s.u.As32())
	ADDQ(s.entries, s.u)
}

// further replaces an entry by that of its further table, with all of the bits.
func (s *reading) further(code int) {
	s.table(code)
	MOVQ(s.acc, s.t)
	SHRQ(U8(2+rootBits), s.t)
	LEAL(Mem{Base: s.e, Disp: -rootBits}, s.b.As32())
	BZHIQ(s.b, s.t, s.t)
	SHRL(U8(16), s.e.As32())
	ADDQ(s.t, s.e)
	MOVL(Mem{Base: s.u, Index: s.e, Scale: 4}, s.e.As32())
	ADDL(U8(rootBits), s.e.As32())
}
