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

// One row of both blocks of a pair is one register: eight words of the left block in the low lane, of the right one in
// the high lane. 32-bit sums come as two registers, l from VPUNPCKLWD and h from VPUNPCKHWD; the h ones wait on the
// stack.
func idct() {
	k := pairs()
	round1, round2 := asm.Dwords("idctRound1", 1<<10), asm.Dwords("idctRound2", 1<<17)
	level := asm.Words("idctLevel", -0x7f80) // 0x80 in each byte
	bias, high := asm.Words("idctBias", 1<<13), asm.Words("idctHigh", -1<<14)

	TEXT("idctPairs", NOSPLIT, "func(dst *byte, stride int, src *int16, q *uint16, pairs int)")
	Doc("idctPairs transforms pairs of neighbouring blocks to 8 rows of 16 bytes each.")
	spill := alignedLocal(12 * 32)
	dst, st := Load(Param("dst"), GP64()), Load(Param("stride"), GP64())
	src, q, n := Load(Param("src"), GP64()), Load(Param("q"), GP64()), Load(Param("pairs"), GP64())
	st3 := GP64()
	LEAQ(Mem{Base: st, Index: st, Scale: 2}, st3)

	Label("pair")
	var r [8]vec
	for i := range r {
		r[i] = dequantise(src, q, i)
	}
	t, first := YMM(), r[0]
	VPADDW(bias, first, t)
	VPTEST(high, t)
	JNZ(LabelRef("wild"))
	Label("first")
	pass(&r, k, round1, 11, spill)
	transposeWords(&r)
	pass(&r, k, round2, 18, spill)
	store(&r, level, dst, st, st3)
	ADDQ(U8(16), dst)
	ADDQ(U32(256), src)
	DECQ(n)
	JNZ(LabelRef("pair"))
	VZEROUPPER()
	RET()

	Label("wild")
	wrapFlat(src, first)
	JMP(LabelRef("first"))
}

// dequantise loads row i of both blocks and multiplies; products wrap to 16 bits.
func dequantise(src, q Register, i int) vec {
	y, t := YMM(), YMM()
	VBROADCASTI128(Mem{Base: src, Disp: 16 * i}, y)
	VINSERTI128(U8(1), Mem{Base: src, Disp: 128 + 16*i}, y, y)
	VBROADCASTI128(Mem{Base: q, Disp: 16 * i}, t)
	VPMULLW(t, y, y)
	return y
}

// wrapFlat makes r0 a 14-bit number in each block whose rows 1 to 7 are zero: there the first pass is r0<<2 that wraps
// and does not saturate. Only damaged files get here.
func wrapFlat(src Register, r0 vec) {
	or, t := YMM(), YMM()
	VPXOR(or, or, or)
	for i := 1; i < 8; i++ {
		VBROADCASTI128(Mem{Base: src, Disp: 16 * i}, t)
		VINSERTI128(U8(1), Mem{Base: src, Disp: 128 + 16*i}, t, t)
		VPOR(t, or, or)
	}
	VPXOR(t, t, t)
	VPCMPEQQ(t, or, or)
	VPSHUFD(U8(0x4e), or, t)
	VPAND(t, or, or)
	VPSLLW(U8(2), r0, t)
	VPSRAW(U8(2), t, t)
	VPBLENDVB(or, t, r0, r0)
}

// pass is the one-dimensional transform over the eight registers, with a right shift at its end; results saturate to 16
// bits. The sums r0+-r4, r7+r3 and r5+r1 wrap to 16 bits.
func pass(r *[8]vec, k factors, round Mem, shift uint8, spill Mem) {
	slot := func(i int) Mem { return spill.Offset(32 * i) }
	s, d := r[0], YMM()
	VPSUBW(r[4], r[0], d)
	VPADDW(r[4], r[0], s)
	var low, high [4]Op
	for i, o := range odd(r, k, VPUNPCKHWD) {
		VMOVDQU(o, slot(8+i))
		high[i] = slot(8 + i)
	}
	for i, o := range odd(r, k, VPUNPCKLWD) {
		low[i] = o
	}
	even(s, d, r[2], r[6], k, round, VPUNPCKHWD, func(i int, e vec) {
		a := YMM()
		VPSUBD(high[3-i], e, a)
		VPADDD(high[3-i], e, e)
		VPSRAD(U8(shift), e, e)
		VPSRAD(U8(shift), a, a)
		VMOVDQU(e, slot(i))
		VMOVDQU(a, slot(7-i))
	})
	even(s, d, r[2], r[6], k, round, VPUNPCKLWD, func(i int, e vec) {
		a := YMM()
		VPSUBD(low[3-i], e, a)
		VPADDD(low[3-i], e, e)
		VPSRAD(U8(shift), e, e)
		VPSRAD(U8(shift), a, a)
		VPACKSSDW(slot(i), e, e)
		VPACKSSDW(slot(7-i), a, a)
		r[i], r[7-i] = e, a
	})
}

type unpack = func(ops ...Op)

func odd(r *[8]vec, k factors, un unpack) [4]vec {
	z3, z4 := YMM(), YMM()
	VPADDW(r[3], r[7], z3)
	VPADDW(r[1], r[5], z4)
	un(z4, z3, z3)
	y3, y4 := YMM(), YMM()
	VPMADDWD(k.y3, z3, y3)
	VPMADDWD(k.y4, z3, y4)
	a := YMM()
	un(r[1], r[7], a)
	o0, o3 := YMM(), YMM()
	VPMADDWD(k.o0, a, o0)
	VPADDD(y3, o0, o0)
	VPMADDWD(k.o3, a, o3)
	VPADDD(y4, o3, o3)
	un(r[3], r[5], a)
	o1, o2 := YMM(), YMM()
	VPMADDWD(k.o1, a, o1)
	VPADDD(y4, o1, o1)
	VPMADDWD(k.o2, a, o2)
	VPADDD(y3, o2, o2)
	return [4]vec{o0, o1, o2, o3}
}

// even calls out with e0, e3, e1, e2 as soon as each is known; out may overwrite it.
func even(s, d, r2, r6 vec, k factors, round Mem, un unpack, out func(i int, e vec)) {
	u, a := YMM(), YMM()
	un(d, s, u)
	un(r6, r2, a)
	half := func(t, z Mem, plus, minus int) {
		x, y, e := YMM(), YMM(), YMM()
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
			to[o], to[o+1] = YMM(), from[i]
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

// store packs the eight columns to bytes, adds 128 and writes 8 rows of both blocks.
func store(r *[8]vec, level Mem, dst, st, st3 Register) {
	for i := range 4 { // columns i and i+4
		VPACKSSWB(r[i+4], r[i], r[i])
	}
	both := func(un, unHigh unpack, a, b vec) (lo, hi vec) {
		lo, hi = YMM(), a
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
	for i, d := range []vec{d0, d1, d2, d3} {
		VPADDB(level, d, d)
		VPERMQ(U8(0xd8), d, d) // left row, right row | left next row, right next row
		VMOVDQU(d.AsX(), rows[2*i])
		VEXTRACTI128(U8(1), d, rows[2*i+1])
	}
}
