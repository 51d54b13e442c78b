package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

const (
	bitsAcc, bitsCount, bitsAt = 0, 8, 16
	green, red, blue, alpha    = 0, 1, 2, 3
)

const (
	rootBits  = 8
	jointBits = 11
	jointMiss = 0x80
	margin    = 8 + 5*7 // what five refills may look at
	literal   = 256 << 16
	cacheAt   = (256 + 24) << 16
	hash      = 0x1e35a7bd
)

// reading is the registers of literals.
type reading struct {
	acc, count, p GPVirtual // of count only the lowest byte counts
	greens, joint GPVirtual
	kept          Mem // green's entry
	pix, left     GPVirtual
	colors, shift GPVirtual
	e, v, t, u    GPVirtual
}

// literals reads pixels, two for each refill of the bits.
func literals() {
	TEXT("readLiterals", NOSPLIT, "func(data *byte, size int, bits *[3]uint64, tables *[4]*uint32, joint, colors *uint32, shift int, pix *uint32, n int) int")
	Doc("readLiterals reads up to n pixels, each by a literal or by the cache of colors, into which it puts each, and returns how many: fewer where a copy",
		"comes next, or the last bytes of the data. Bits are the next ones, how many of them count, and the place of others in the data.")
	Pragma("noescape")
	bits := asm.Pointer("bits")
	s := &reading{joint: asm.Pointer("joint"), colors: asm.Pointer("colors"), shift: asm.Pointer("shift"), pix: asm.Pointer("pix"), left: asm.Pointer("n"),
		acc: GP64(), count: GP64(), p: GP64(), greens: GP64(), e: GP64(), v: GP64(), t: GP64(), u: GP64()}
	end := AllocLocal(8)
	s.kept = AllocLocal(8)
	Load(Param("data"), s.p)
	Load(Param("size"), s.t)
	LEAQ(Mem{Base: s.p, Index: s.t, Scale: 1, Disp: -margin}, s.t)
	MOVQ(s.t, end)
	ADDQ(Mem{Base: bits, Disp: bitsAt}, s.p)
	MOVQ(Mem{Base: bits, Disp: bitsAcc}, s.acc)
	MOVQ(Mem{Base: bits, Disp: bitsCount}, s.count)
	Load(Param("tables"), s.greens)
	MOVQ(Mem{Base: s.greens, Disp: 8 * green}, s.greens)
	Label("two")
	CMPQ(s.p, end)
	JG(LabelRef("done"))
	s.refill()
	s.pixel("A")
	DECQ(s.left)
	JE(LabelRef("done"))
	s.pixel("B")
	DECQ(s.left)
	JNE(LabelRef("two"))
	Label("done")
	Load(Param("data"), s.t)
	SUBQ(s.t, s.p)
	Load(Param("bits"), s.t)
	MOVBLZX(s.count.As8(), s.count.As32())
	MOVQ(s.p, Mem{Base: s.t, Disp: bitsAt})
	MOVQ(s.acc, Mem{Base: s.t, Disp: bitsAcc})
	MOVQ(s.count, Mem{Base: s.t, Disp: bitsCount})
	Load(Param("n"), s.t)
	SUBQ(s.left, s.t)
	Store(s.t, ReturnIndex(0))
	RET()
	s.outOfLine("A")
	s.outOfLine("B")
}

// refill is bitReader.refill, of 8 bytes that are there.
func (s *reading) refill() {
	MOVQ(Mem{Base: s.p}, s.t)
	SHLXQ(s.count, s.t, s.t)
	ORQ(s.t, s.acc)
	MOVL(s.count.As32(), s.t.As32())
	NOTL(s.t.As32())
	SHRL(U8(3), s.t.As32())
	ANDL(U8(7), s.t.As32())
	ADDQ(s.t, s.p)
	ORL(U8(56), s.count.As32())
}

// drop takes the bits of an entry.
func (s *reading) drop(e GPVirtual) {
	SHRXQ(e, s.acc, s.acc)
	SUBL(e.As32(), s.count.As32())
}

// pixel reads one: green's entry, then one for all else.
func (s *reading) pixel(name string) {
	MOVBLZX(s.acc.As8(), s.t.As32())
	MOVL(Mem{Base: s.greens, Index: s.t, Scale: 4}, s.e.As32())
	CMPB(s.e.As8(), U8(rootBits))
	JHI(LabelRef("further" + name))
	Label("green" + name)
	CMPL(s.e.As32(), U32(literal))
	JCC(LabelRef("other" + name))
	s.drop(s.e)
	MOVL(s.acc.As32(), s.t.As32())
	ANDL(U32(1<<jointBits-1), s.t.As32())
	MOVL(Mem{Base: s.joint, Index: s.t, Scale: 4}, s.v.As32())
	TESTB(U8(jointMiss), s.v.As8())
	JNE(LabelRef("miss" + name))
	s.drop(s.v)
	MOVL(s.v.As32(), s.t.As32())
	SHRL(U8(8), s.t.As32())
	MOVBLZX(s.t.As8(), s.t.As32())
	ANDL(I32(-1<<16), s.v.As32())
	ORL(s.t.As32(), s.v.As32())
	Label("rest" + name)
	SHRL(U8(16), s.e.As32())
	SHLL(U8(8), s.e.As32())
	ORL(s.e.As32(), s.v.As32())
	Label("pixel" + name)
	MOVL(s.v.As32(), Mem{Base: s.pix})
	ADDQ(U8(4), s.pix)
	IMUL3L(U32(hash), s.v.As32(), s.t.As32())
	SHRXL(s.shift.As32(), s.t.As32(), s.t.As32())
	MOVL(s.v.As32(), Mem{Base: s.colors, Index: s.t, Scale: 4})
}

// further looks up the entry of a code longer than rootBits, of a table, and leaves all of its bits in it.
func (s *reading) further(table Register) {
	MOVL(s.e.As32(), s.t.As32())
	SUBL(U8(rootBits), s.t.As32())
	MOVBLZX(s.t.As8(), s.t.As32())
	MOVQ(s.acc, s.u)
	SHRQ(U8(rootBits), s.u)
	BZHIQ(s.t, s.u, s.u)
	SHRL(U8(16), s.e.As32())
	ADDQ(s.u, s.e)
	MOVL(Mem{Base: table, Index: s.e, Scale: 4}, s.e.As32())
	ADDL(U8(rootBits), s.e.As32())
}

// outOfLine is what seldom happens to a pixel.
func (s *reading) outOfLine(name string) {
	Label("further" + name)
	s.further(s.greens)
	JMP(LabelRef("green" + name))

	Label("other" + name)
	CMPL(s.e.As32(), U32(cacheAt))
	JCS(LabelRef("done"))
	s.drop(s.e)
	SHRL(U8(16), s.e.As32())
	MOVL(Mem{Base: s.colors, Index: s.e, Scale: 4, Disp: -4 * (256 + 24)}, s.v.As32())
	JMP(LabelRef("pixel" + name))

	// Three codes may take 45 bits, which are there behind a refill, and green's next 15 behind another one.
	Label("miss" + name)
	table := GP64()
	s.refill()
	MOVQ(s.e, s.kept)
	XORL(s.v.As32(), s.v.As32())
	for _, c := range []struct{ code, shift int }{{red, 16}, {blue, 0}, {alpha, 24}} {
		label := fmt.Sprintf("short%s%d", name, c.code)
		Load(Param("tables"), table)
		MOVQ(Mem{Base: table, Disp: 8 * c.code}, table)
		MOVBLZX(s.acc.As8(), s.t.As32())
		MOVL(Mem{Base: table, Index: s.t, Scale: 4}, s.e.As32())
		CMPB(s.e.As8(), U8(rootBits))
		JLS(LabelRef(label))
		s.further(table)
		Label(label)
		s.drop(s.e)
		SHRL(U8(16), s.e.As32())
		if c.shift > 0 {
			SHLL(U8(c.shift), s.e.As32())
		}
		ORL(s.e.As32(), s.v.As32())
	}
	s.refill()
	MOVQ(s.kept, s.e)
	JMP(LabelRef("rest" + name))
}
