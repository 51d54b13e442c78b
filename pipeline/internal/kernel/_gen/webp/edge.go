package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// line is how long a line of pixels beside an edge is: 16 of luma in the lower half of a vector, in the upper half 8 of Cb and 8 of Cr.
const line = 32

// Where the fields of a strength are.
const (
	strengthLimit    = 0
	strengthInterior = 4
	strengthVariance = 8
	strengthInner    = 12
)

// ymms returns n registers.
func ymms(n int) (v []VecVirtual) {
	for range n {
		v = append(v, YMM())
	}
	return v
}

// loadLow loads the lowest bytes of a vector, as an instruction for half a register does: it makes the others 0, which avo does not know.
func loadLow(opcode string, from Mem) VecVirtual {
	v := YMM()
	Instruction(&ir.Instruction{
		Opcode: opcode, ISA: []string{"AVX"}, Operands: []Op{from, v.AsX()}, Inputs: []Op{from}, Outputs: []Op{v},
	})
	return v
}

// difference is |a − b|.
func difference(a, b VecVirtual) VecVirtual {
	d, t := YMM(), YMM()
	VPSUBUSB(a, b, d)
	VPSUBUSB(b, a, t)
	VPOR(t, d, d)
	return d
}

// eighth divides signed bytes by 8, rounded down.
func eighth(x, zero VecVirtual) {
	t := YMM()
	VPUNPCKLBW(x, zero, t)
	VPUNPCKHBW(x, zero, x)
	VPSRAW(U8(11), t, t)
	VPSRAW(U8(11), x, x)
	VPACKSSWB(x, t, x)
}

// edges makes code that filters the edges of a macroblock in one direction, as section 15 of RFC 6386 says. Its lines come in groups of four, of which
// 0 is the first one, and −1 the last one of the macroblock before; chroma has two groups.
type edges struct {
	outerLimit, innerLimit, interior, variance           Mem // the strength, in all bytes
	high, even, upper, three, four, half, nine, rounding Mem

	load       func(group int) []VecVirtual
	store      func(group int, v []VecVirtual) // where inner edges are filtered
	storeFirst func(v []VecVirtual)            // group 0 where they are not
}

// makeEdges makes constants, which both directions share.
func makeEdges() *edges {
	all := func(name string, v int) Mem {
		var b [16]int
		for i := range b {
			b[i] = v
		}
		return asm.Bytes(name, b)
	}
	upper := GLOBL("edgeUpper", 24)
	for i := range line {
		DATA(i, U8(i/16*255))
	}
	return &edges{
		high: all("edgeHigh", 0x80), even: all("edgeEven", 0xfe), upper: upper,
		three: all("edge3", 3), four: all("edge4", 4), half: all("edge64", 64),
		nine: asm.Words("edge9", 9<<8), rounding: asm.Words("edge63", 63),
	}
}

// loadStrength keeps vectors of the strength's values.
func (e *edges) loadStrength() {
	s, x := asm.Pointer("s"), YMM()
	for _, v := range []struct {
		to   *Mem
		from int
	}{{&e.interior, strengthInterior}, {&e.variance, strengthVariance}, {&e.innerLimit, strengthLimit}, {&e.outerLimit, strengthLimit}} {
		*v.to = AllocLocal(line)
		VPBROADCASTB(Mem{Base: s, Disp: v.from}, x)
		if v.to == &e.outerLimit {
			VPADDB(e.four, x, x)
		}
		VMOVDQU(x, *v.to)
	}
}

// macroblock filters the edges between the groups.
func (e *edges) macroblock() {
	e.loadStrength()
	first := e.load(0)
	CMPQ(asm.Param("outer"), Imm(0))
	JE(LabelRef("inner"))
	before := e.load(-1)
	e.filter(before, first, e.outerLimit, false)
	e.store(-1, before)
	Label("inner")
	CMPB(Mem{Base: asm.Pointer("s"), Disp: strengthInner}, Imm(0))
	JE(LabelRef("done"))
	second := e.load(1)
	e.filter(first, second, e.innerLimit, true)
	e.store(0, first)
	third := e.load(2)
	VPOR(e.upper, third[1], third[1]) // where chroma has ended is 0, 255, 0: pixels that differ so much are not filtered
	e.filter(second, third, e.innerLimit, true)
	e.store(1, second)
	fourth := e.load(3)
	e.filter(third, fourth, e.innerLimit, true)
	e.store(2, third)
	e.store(3, fourth)
	VZEROUPPER()
	RET()
	Label("done")
	e.storeFirst(first)
	VZEROUPPER()
	RET()
}

// filter filters the edge between two groups: an inner one changes two lines on each side, an outer one three.
func (e *edges) filter(p, q []VecVirtual, limit Mem, inner bool) {
	v := append(append([]VecVirtual{}, p...), q...) // p3 to p0, q0 to q3
	zero := YMM()
	VPXOR(zero, zero, zero)
	// Where the edge is filtered, and where the variance is not high.
	mask, calm := YMM(), YMM()
	VPMAXUB(difference(v[2], v[3]), difference(v[5], v[4]), calm)
	VPMAXUB(difference(v[0], v[1]), calm, mask)
	VPMAXUB(difference(v[1], v[2]), mask, mask)
	VPMAXUB(difference(v[7], v[6]), mask, mask)
	VPMAXUB(difference(v[6], v[5]), mask, mask)
	VPSUBUSB(e.interior, mask, mask)
	VPSUBUSB(e.variance, calm, calm)
	VPCMPEQB(zero, calm, calm)
	across, outer := difference(v[3], v[4]), difference(v[2], v[5])
	VPAND(e.even, outer, outer)
	VPSRLW(U8(1), outer, outer)
	VPADDUSB(across, across, across)
	VPADDUSB(outer, across, across)
	VPSUBUSB(limit, across, across)
	VPOR(across, mask, mask)
	VPCMPEQB(zero, mask, mask)
	changed := v[1:7]
	if inner {
		changed = v[2:6]
	}
	for _, x := range changed {
		VPXOR(e.high, x, x) // 128 is taken off
	}
	a, d := YMM(), YMM()
	VPSUBSB(v[5], v[2], a)
	VPSUBSB(v[3], v[4], d)
	if inner {
		e.filterInner(v, a, d, mask, calm, zero)
	} else {
		e.filterOuter(v, a, d, mask, calm, zero)
	}
	for _, x := range changed {
		VPXOR(e.high, x, x)
	}
}

// addThrice adds three times d to a, and clears it outside of the mask.
func addThrice(a, d, mask VecVirtual) {
	for range 3 {
		VPADDSB(d, a, a)
	}
	VPAND(mask, a, a)
}

// filterInner changes two pixels on each side, or one where the variance is high.
func (e *edges) filterInner(v []VecVirtual, a, d, mask, calm, zero VecVirtual) {
	VPANDN(a, calm, a)
	addThrice(a, d, mask)
	b := YMM()
	VPADDSB(e.three, a, b)
	VPADDSB(e.four, a, a)
	eighth(b, zero)
	eighth(a, zero)
	VPADDSB(b, v[3], v[3])
	VPSUBSB(a, v[4], v[4])
	VPXOR(e.high, a, a) // half of it, rounded up
	VPAVGB(zero, a, a)
	VPSUBB(e.half, a, a)
	VPAND(calm, a, a)
	VPADDSB(a, v[2], v[2])
	VPSUBSB(a, v[5], v[5])
}

// filterOuter changes three pixels on each side, or one where the variance is high.
func (e *edges) filterOuter(v []VecVirtual, a, d, mask, calm, zero VecVirtual) {
	addThrice(a, d, mask)
	f, b := YMM(), YMM()
	VPANDN(a, calm, f)
	VPAND(calm, a, a)
	VPADDSB(e.three, f, b)
	VPADDSB(e.four, f, f)
	eighth(b, zero)
	eighth(f, zero)
	VPADDSB(b, v[3], v[3])
	VPSUBSB(f, v[4], v[4])
	// 9, 18 and 27 parts of 128, rounded.
	step, sum := ymms(2), ymms(2)
	VPUNPCKLBW(a, zero, step[0])
	VPUNPCKHBW(a, zero, step[1])
	for k := range step {
		VPMULHW(e.nine, step[k], step[k])
		VPADDW(e.rounding, step[k], sum[k])
	}
	for k := range 3 {
		if k > 0 {
			for i := range sum {
				VPADDW(step[i], sum[i], sum[i])
			}
		}
		low, up := YMM(), YMM()
		VPSRAW(U8(7), sum[0], low)
		VPSRAW(U8(7), sum[1], up)
		VPACKSSWB(up, low, low)
		VPADDSB(low, v[1+k], v[1+k])
		VPSUBSB(low, v[6-k], v[6-k])
	}
}

// stride is how far it is to the next row, and to the third.
type stride struct{ one, three Register }

func strideOf(name string) stride {
	one, three := asm.Pointer(name), GP64()
	LEAQ(Mem{Base: one, Index: one, Scale: 2}, three)
	return stride{one, three}
}

// rows are four rows.
func (s stride) rows(base Register) []Mem {
	return []Mem{{Base: base}, {Base: base, Index: s.one, Scale: 1}, {Base: base, Index: s.one, Scale: 2}, {Base: base, Index: s.three, Scale: 1}}
}

// next is four rows below base, last four rows above.
func (s stride) next(base Register) Register {
	p := GP64()
	LEAQ(Mem{Base: base, Index: s.one, Scale: 4}, p)
	return p
}

func (s stride) last(base Register) Register {
	p, by := GP64(), GP64()
	MOVQ(base, p)
	MOVQ(s.one, by)
	SHLQ(U8(2), by)
	SUBQ(by, p)
	return p
}
