package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// The constants of the slow-but-accurate integer transform: round(c * 2^13).
const (
	c0298 = 2446
	c0390 = 3196
	c0541 = 4433
	c0765 = 6270
	c0899 = 7373
	c1175 = 9633
	c1501 = 12299
	c1847 = 15137
	c1961 = 16069
	c2053 = 16819
	c2562 = 20995
	c3072 = 25172
)

type vec = VecVirtual

// factors are the word pairs for VPMADDWD, named by the result they help to make.
type factors struct{ t0, t1, t2, t3, y3, y4, o0, o1, o2, o3 Mem }

func pairs() factors {
	return factors{
		t0: asm.Words("idctT0", 1<<13, 0), t1: asm.Words("idctT1", 0, 1<<13),
		t2: asm.Words("idctT2", c0541, c0541-c1847), t3: asm.Words("idctT3", c0541+c0765, c0541),
		y3: asm.Words("idctY3", c1175-c1961, c1175), y4: asm.Words("idctY4", c1175, c1175-c0390),
		o0: asm.Words("idctO0", c0298-c0899, -c0899), o1: asm.Words("idctO1", c2053-c2562, -c2562),
		o2: asm.Words("idctO2", -c2562, c3072-c2562), o3: asm.Words("idctO3", -c0899, c1501-c0899),
	}
}

// alignedLocal is memory on the stack that begins at a multiple of 32. Goroutines' stacks are aligned to words alone:
// where a register crossed a line of the cache, or a page, storing it took most of the kernel's time.
func alignedLocal(bytes int) Mem {
	room, begin := AllocLocal(bytes+24), GP64()
	LEAQ(room.Offset(24), begin)
	ANDQ(I8(-32), begin)
	return Mem{Base: begin}
}

// transform is what makes one pass of the inverse DCT: one row of neighbouring blocks is one register, eight words of a
// block in each lane. 32-bit sums come as two registers, l from VPUNPCKLWD and h from VPUNPCKHWD.
type transform struct {
	factors
	keep func(i int, v vec) Op // puts one of twelve h sums aside
}

// idct: the h sums wait on the stack with AVX2, in registers with AVX-512.
func idct() {
	name, doc := "idctPairs", "idctPairs transforms pairs of neighbouring blocks to 8 rows of 16 bytes each."
	if asm.Lanes == 4 {
		name, doc = "idctFours", "idctFours transforms fours of neighbouring blocks to 8 rows of 32 bytes each."
	}
	t := transform{factors: pairs(), keep: func(_ int, v vec) Op { return v }}
	round1, round2 := asm.Dwords("idctRound1", 1<<10), asm.Dwords("idctRound2", 1<<17)
	level := asm.Words("idctLevel", -0x7f80) // 0x80 in each byte
	bias, high := asm.Words("idctBias", 1<<13), asm.Words("idctHigh", -1<<14)

	TEXT(name, NOSPLIT, "func(dst *byte, stride int, src *int16, q *uint16, n int)")
	Doc(doc)
	if asm.Lanes == 2 {
		spill := alignedLocal(12 * 32)
		t.keep = func(i int, v vec) Op {
			VMOVDQU(v, spill.Offset(32*i))
			return spill.Offset(32 * i)
		}
	}
	dst, st := Load(Param("dst"), GP64()), Load(Param("stride"), GP64())
	src, q, n := Load(Param("src"), GP64()), Load(Param("q"), GP64()), Load(Param("n"), GP64())
	st3 := GP64()
	LEAQ(Mem{Base: st, Index: st, Scale: 2}, st3)

	Label("blocks")
	var r [8]vec
	for i := range r {
		r[i] = dequantise(src, q, i)
	}
	first, biased := r[0], asm.Vector()
	VPADDW(bias, first, biased)
	jumpIfAny(high, biased, "wild")
	Label("first")
	t.pass(&r, round1, 11)
	transposeWords(&r)
	t.pass(&r, round2, 18)
	store(&r, level, dst, st, st3)
	ADDQ(U8(8*asm.Lanes), dst)
	ADDQ(U32(128*asm.Lanes), src)
	DECQ(n)
	JNZ(LabelRef("blocks"))
	VZEROUPPER()
	RET()

	Label("wild")
	wrapFlat(src, first)
	JMP(LabelRef("first"))
}

// jumpIfAny jumps if a and b have a bit in common.
func jumpIfAny(a Op, b vec, label string) {
	if asm.Lanes == 2 {
		VPTEST(a, b)
		JNZ(LabelRef(label))
		return
	}
	k := K()
	VPTESTMW(a, b, k)
	KORTESTD(k, k)
	JNZ(LabelRef(label))
}

// rows loads row i of neighbouring blocks.
func rows(src Register, i int) vec {
	y := asm.Vector()
	if asm.Lanes == 2 {
		VBROADCASTI128(Mem{Base: src, Disp: 16 * i}, y)
		VINSERTI128(U8(1), Mem{Base: src, Disp: 128 + 16*i}, y, y)
		return y
	}
	VBROADCASTI32X4(Mem{Base: src, Disp: 16 * i}, y)
	for lane := 1; lane < 4; lane++ {
		VINSERTI32X4(U8(lane), Mem{Base: src, Disp: 128*lane + 16*i}, y, y)
	}
	return y
}

// dequantise loads row i of the blocks and multiplies; products wrap to 16 bits.
func dequantise(src, q Register, i int) vec {
	y, t := rows(src, i), asm.Vector()
	if asm.Lanes == 2 {
		VBROADCASTI128(Mem{Base: q, Disp: 16 * i}, t)
	} else {
		VBROADCASTI32X4(Mem{Base: q, Disp: 16 * i}, t)
	}
	VPMULLW(t, y, y)
	return y
}

// wrapFlat makes r0 a 14-bit number in each block whose rows 1 to 7 are zero: there the first pass is r0<<2 that wraps
// and does not saturate. Only damaged files get here.
func wrapFlat(src Register, r0 vec) {
	or, t := rows(src, 1), asm.Vector()
	for i := 2; i < 8; i++ {
		bitwiseOr(rows(src, i), or)
	}
	VPSHUFD(U8(0x4e), or, t)
	bitwiseOr(t, or)
	VPSLLW(U8(2), r0, t)
	VPSRAW(U8(2), t, t)
	if asm.Lanes == 2 {
		zero := YMM()
		VPXOR(zero, zero, zero)
		VPCMPEQQ(zero, or, or)
		VPBLENDVB(or, t, r0, r0)
		return
	}
	flat := K()
	VPTESTNMQ(or, or, flat)
	VMOVDQU64(t, flat, r0)
}

// bitwiseOr adds v's bits to those of to.
func bitwiseOr(v, to vec) {
	if asm.Lanes == 2 {
		VPOR(v, to, to)
	} else {
		VPORQ(v, to, to)
	}
}

// pass is the one-dimensional transform over the eight registers, with a right shift at its end; results saturate to 16
// bits. The sums r0+-r4, r7+r3 and r5+r1 wrap to 16 bits.
func (t *transform) pass(r *[8]vec, round Mem, shift uint8) {
	s, d := r[0], asm.Vector()
	VPSUBW(r[4], r[0], d)
	VPADDW(r[4], r[0], s)
	var low, high, wide [8]Op
	for i, o := range t.odd(r, VPUNPCKHWD) {
		high[i] = t.keep(8+i, o)
	}
	for i, o := range t.odd(r, VPUNPCKLWD) {
		low[i] = o
	}
	t.even(s, d, r[2], r[6], round, VPUNPCKHWD, func(i int, e vec) {
		a := asm.Vector()
		VPSUBD(high[3-i], e, a)
		VPADDD(high[3-i], e, e)
		VPSRAD(U8(shift), e, e)
		VPSRAD(U8(shift), a, a)
		wide[i], wide[7-i] = t.keep(i, e), t.keep(7-i, a)
	})
	t.even(s, d, r[2], r[6], round, VPUNPCKLWD, func(i int, e vec) {
		a := asm.Vector()
		VPSUBD(low[3-i], e, a)
		VPADDD(low[3-i], e, e)
		VPSRAD(U8(shift), e, e)
		VPSRAD(U8(shift), a, a)
		VPACKSSDW(wide[i], e, e)
		VPACKSSDW(wide[7-i], a, a)
		r[i], r[7-i] = e, a
	})
}

type unpack = func(ops ...Op)

func (k *transform) odd(r *[8]vec, un unpack) [4]vec {
	z3, z4 := asm.Vector(), asm.Vector()
	VPADDW(r[3], r[7], z3)
	VPADDW(r[1], r[5], z4)
	un(z4, z3, z3)
	y3, y4 := asm.Vector(), asm.Vector()
	VPMADDWD(k.y3, z3, y3)
	VPMADDWD(k.y4, z3, y4)
	a := asm.Vector()
	un(r[1], r[7], a)
	o0, o3 := asm.Vector(), asm.Vector()
	VPMADDWD(k.o0, a, o0)
	VPADDD(y3, o0, o0)
	VPMADDWD(k.o3, a, o3)
	VPADDD(y4, o3, o3)
	un(r[3], r[5], a)
	o1, o2 := asm.Vector(), asm.Vector()
	VPMADDWD(k.o1, a, o1)
	VPADDD(y4, o1, o1)
	VPMADDWD(k.o2, a, o2)
	VPADDD(y3, o2, o2)
	return [4]vec{o0, o1, o2, o3}
}

// even calls out with e0, e3, e1, e2 as soon as each is known; out may overwrite it.
func (k *transform) even(s, d, r2, r6 vec, round Mem, un unpack, out func(i int, e vec)) {
	u, a := asm.Vector(), asm.Vector()
	un(d, s, u)
	un(r6, r2, a)
	half := func(t, z Mem, plus, minus int) {
		x, y, e := asm.Vector(), asm.Vector(), asm.Vector()
		VPMADDWD(t, u, x)
		VPADDD(round, x, x)
		VPMADDWD(z, a, y)
		VPADDD(y, x, e)
		VPSUBD(y, x, x)
		out(plus, e)
		out(minus, x)
	}
	half(k.t0, k.t3, 0, 3)
	half(k.t1, k.t2, 1, 2)
}

// transposeWords transposes the 8x8 words in each lane.
func transposeWords(r *[8]vec) {
	step := func(un, unHigh unpack, from [8]vec, dist int) (to [8]vec) {
		for i, o := 0, 0; o < 8; i++ {
			if i&dist != 0 {
				continue
			}
			to[o], to[o+1] = asm.Vector(), from[i]
			un(from[i+dist], from[i], to[o])
			unHigh(from[i+dist], from[i], to[o+1])
			o += 2
		}
		return to
	}
	a := step(VPUNPCKLWD, VPUNPCKHWD, *r, 1) // 0l 0h 2l 2h 4l 4h 6l 6h: columns 0-3 and 4-7 of rows 0,1; 2,3; 4,5; 6,7
	b := step(VPUNPCKLDQ, VPUNPCKHDQ, [8]vec{a[0], a[2], a[1], a[3], a[4], a[6], a[5], a[7]}, 1)
	// b: columns 0,1; 2,3; 4,5; 6,7 of rows 0-3, then of rows 4-7
	*r = step(VPUNPCKLQDQ, VPUNPCKHQDQ, b, 4)
}

// store packs the eight columns to bytes, adds 128 and writes 8 rows of all blocks.
func store(r *[8]vec, level Mem, dst, st, st3 Register) {
	for i := range 4 { // columns i and i+4
		VPACKSSWB(r[i+4], r[i], r[i])
	}
	both := func(un, unHigh unpack, a, b vec) (lo, hi vec) {
		lo, hi = asm.Vector(), a
		un(b, a, lo)
		unHigh(b, a, hi)
		return lo, hi
	}
	a01, a45 := both(VPUNPCKLBW, VPUNPCKHBW, r[0], r[1])
	a23, a67 := both(VPUNPCKLBW, VPUNPCKHBW, r[2], r[3])
	b03, c03 := both(VPUNPCKLWD, VPUNPCKHWD, a01, a23)
	b47, c47 := both(VPUNPCKLWD, VPUNPCKHWD, a45, a67)
	d0, d1 := both(VPUNPCKLDQ, VPUNPCKHDQ, b03, b47)
	d2, d3 := both(VPUNPCKLDQ, VPUNPCKHDQ, c03, c47)
	p := GP64()
	LEAQ(Mem{Base: dst, Index: st, Scale: 4}, p)
	rows := []Mem{
		{Base: dst}, {Base: dst, Index: st, Scale: 1}, {Base: dst, Index: st, Scale: 2}, {Base: dst, Index: st3, Scale: 1},
		{Base: p}, {Base: p, Index: st, Scale: 1}, {Base: p, Index: st, Scale: 2}, {Base: p, Index: st3, Scale: 1},
	}
	var order vec // of quadwords: the row of each block, then the next row of each
	if asm.Lanes == 4 {
		order = ZMM()
		VMOVDQU64(asm.All("idctOrder", quadwords(0, 2, 4, 6, 1, 3, 5, 7)), order)
	}
	for i, d := range []vec{d0, d1, d2, d3} {
		VPADDB(level, d, d)
		if asm.Lanes == 2 {
			VPERMQ(U8(0xd8), d, d) // left row, right row | left next row, right next row
			VMOVDQU(d.AsX(), rows[2*i])
			VEXTRACTI128(U8(1), d, rows[2*i+1])
			continue
		}
		VPERMQ(d, order, d)
		VMOVDQU64(d.AsY(), rows[2*i])
		VEXTRACTI64X4(U8(1), d, rows[2*i+1])
	}
}

// quadwords lays small numbers down in eight bytes each.
func quadwords(v ...byte) (b [64]byte) {
	for i, x := range v {
		b[8*i] = x
	}
	return b
}
