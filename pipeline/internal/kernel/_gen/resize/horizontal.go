package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// rowPairs is a kernel of the pass along x, which makes two rows at a time. Its functions are what depends on how long
// vectors are.
type rowPairs struct {
	vectors int // of a sum of both rows
	load    func()
	taps    func(rows [2]Register, at []Register, w Register, pairs int, upper, lower []VecVirtual) // adds one or two tap pairs
	store   func(dst, dstStride, rows Register, groups Mem, sums []VecVirtual)
}

// horizontal makes four pixels of two rows at a time, one pixel per 128-bit lane: vector A holds pixels 0 and 2 of the
// group, B pixels 1 and 3. A dword holds the two samples of a tap pair of one channel; the fourth dword of a lane is 0.
// Sixteen bytes, loaded once, hold the four source pixels of two tap pairs. VPMADDWD multiplies with the upper bits of
// the weights and with the lower 11; the sum of both is upper<<11 + lower modulo 2³².
func horizontal() {
	first, second := tapMasks()
	squeeze := asm.Bytes("resizeSqueeze", [16]int{0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, zero, zero, zero, zero})
	begin("resizeHorizontalAVX2", "resizeHorizontalAVX2 makes groups of four pixels of rows ≥ 1 rows.",
		"places holds five offsets per group: the group's in a row of dst, and where the taps of its pixels 0, 2, 1, 3 begin in a row of",
		"src. weights holds four vectors per group and tap pair: upper halves of pixels 0 and 2, of 1 and 3, lower halves of both.",
		"It reads up to 16 bytes from the first byte of every second tap pair on, and writes the last two groups exactly;",
		"others may write 4 bytes of the group that follows.")
	mask := vectors(2)
	rowPairs{
		vectors: 4, // A and B of the first row, A and B of the second
		load: func() {
			asm.Move(first, mask[0])
			asm.Move(second, mask[1])
		},
		taps: func(rows [2]Register, at []Register, w Register, pairs int, upper, lower []VecVirtual) {
			for r, p := range rows {
				horizontalTaps(p, at, w, pairs, mask, upper[2*r:][:2], lower[2*r:][:2])
			}
		},
		store: func(dst, dstStride, rows Register, groups Mem, sums []VecVirtual) {
			storeRows(dst, dstStride, rows, squeeze, groups, sums)
		},
	}.write()
}

// zero in a shuffle makes a byte 0.
const zero = 0xff

// tapMasks put the samples of the first and of the second tap pair of 16 bytes into dwords, by channel.
func tapMasks() (first, second Mem) {
	const z = zero
	return asm.Bytes("resizeTaps01", [16]int{0, z, 3, z, 1, z, 4, z, 2, z, 5, z, z, z, z, z}),
		asm.Bytes("resizeTaps23", [16]int{6, z, 9, z, 7, z, 10, z, 8, z, 11, z, z, z, z, z})
}

// begin begins a kernel of the pass along x.
func begin(name string, doc ...string) {
	TEXT(name, NOSPLIT, "func(dst *byte, dstStride int, src *byte, srcStride int, rows int, weights *int32, places *int32, groups, pairs int)")
	Pragma("noescape")
	Doc(doc...)
}

// write writes the loops over groups, pairs of rows and tap pairs.
func (k rowPairs) write() {
	src, dst := GP64(), GP64()
	srcStride, dstStride := Load(Param("srcStride"), GP64()), Load(Param("dstStride"), GP64())
	weights, places := Load(Param("weights"), GP64()), Load(Param("places"), GP64())
	half := broadcast(1 << (weightBits - 1))
	k.load()
	groups, pairs := asm.Param("groups"), asm.Param("pairs")

	Label("group")
	Load(Param("src"), src)
	Load(Param("dst"), dst)
	rows := Load(Param("rows"), GP64())
	place := GP64()
	MOVLQSX(Mem{Base: places}, place)
	ADDQ(place, dst)
	at := []Register{GP64(), GP64(), GP64(), GP64()}
	for i, r := range at {
		MOVLQSX(Mem{Base: places, Disp: 4 + 4*i}, r)
	}

	Label("rows")
	upper, lower := vectors(k.vectors), vectors(k.vectors)
	for i := range upper {
		asm.Zero(upper[i])
		asm.Move(half, lower[i])
	}
	p, q, w, n := GP64(), GP64(), GP64(), GP64()
	MOVQ(src, p)
	LEAQ(Mem{Base: src, Index: srcStride, Scale: 1}, q)
	CMPQ(rows, U8(1))
	CMOVQEQ(p, q) // an odd last row is made twice
	both := [2]Register{p, q}
	MOVQ(weights, w)
	MOVQ(pairs, n)
	SUBQ(U8(2), n)
	JLT(LabelRef("single"))

	Label("taps")
	k.taps(both, at, w, 2, upper, lower)
	ADDQ(U8(12), p)
	ADDQ(U8(12), q)
	ADDQ(U32(256), w)
	SUBQ(U8(2), n)
	JGE(LabelRef("taps"))

	Label("single")
	CMPQ(n, I8(-1))
	JNE(LabelRef("store"))
	k.taps(both, at, w, 1, upper, lower)

	Label("store")
	finish(upper, lower)
	k.store(dst, dstStride, rows, groups, upper)
	LEAQ(Mem{Base: src, Index: srcStride, Scale: 2}, src)
	LEAQ(Mem{Base: dst, Index: dstStride, Scale: 2}, dst)
	SUBQ(U8(2), rows)
	JGT(LabelRef("rows"))

	ADDQ(U8(20), places)
	MOVQ(pairs, n)
	SHLQ(U8(7), n)
	ADDQ(n, weights)
	DECQ(groups)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// horizontalTaps adds one or two tap pairs of one row.
func horizontalTaps(p Register, at []Register, w Register, pairs int, mask, upper, lower []VecVirtual) {
	source := vectors(2)
	for v := range source {
		VBROADCASTI128(Mem{Base: p, Index: at[2*v], Scale: 1}, source[v]) // a plain load that defines both lanes, for the allocator
		VINSERTI128(U8(1), Mem{Base: p, Index: at[2*v+1], Scale: 1}, source[v], source[v])
	}
	for i := range pairs {
		for v := range source {
			s, t := YMM(), YMM()
			VPSHUFB(mask[i], source[v], s)
			VPMADDWD(Mem{Base: w, Disp: 128*i + 32*v}, s, t)
			VPADDD(t, upper[v], upper[v])
			VPMADDWD(Mem{Base: w, Disp: 128*i + 64 + 32*v}, s, s)
			VPADDD(s, lower[v], lower[v])
		}
	}
}

// finish turns the sums of both parts into samples still to be clipped: (upper<<11 + lower) >> 22, in place of upper.
func finish(upper, lower []VecVirtual) {
	for i := range upper {
		VPSLLD(U8(11), upper[i], upper[i])
		VPADDD(lower[i], upper[i], upper[i])
		VPSRAD(U8(weightBits), upper[i], upper[i])
	}
}

// storeRows clips, sorts and stores the pixels of both rows.
func storeRows(dst, dstStride, rows Register, squeeze, groups Mem, sums []VecVirtual) {
	VPACKSSDW(sums[1], sums[0], sums[0])
	VPACKSSDW(sums[3], sums[2], sums[2])
	VPACKUSWB(sums[2], sums[0], sums[0]) // lane 0: pixels 0 and 1 of the first row, of the second; lane 1: pixels 2 and 3
	VPERMQ(U8(0b11011000), sums[0], sums[0])
	VPSHUFB(squeeze, sums[0], sums[0])
	other, row := XMM(), GP64()
	VEXTRACTI128(U8(1), sums[0], other)
	LEAQ(Mem{Base: dst, Index: dstStride, Scale: 1}, row)
	CMPQ(rows, U8(1))
	CMOVQEQ(dst, row)
	CMPQ(groups, U8(2)) // with a single pixel in the last group, the one before would write behind the row too
	JLE(LabelRef("last"))
	VMOVDQU(sums[0].AsX(), Mem{Base: dst})
	VMOVDQU(other, Mem{Base: row})
	JMP(LabelRef("stored"))
	Label("last")
	VMOVQ(sums[0].AsX(), Mem{Base: dst})
	VPEXTRD(U8(2), sums[0].AsX(), Mem{Base: dst, Disp: 8})
	VMOVQ(other, Mem{Base: row})
	VPEXTRD(U8(2), other, Mem{Base: row, Disp: 8})
	Label("stored")
}
