package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// horizontalWide is horizontal with one vector for the four pixels of a group, in the order in which places and weights
// have them: 0, 2, 1, 3.
func horizontalWide() {
	first, second := tapMasks()
	begin("resizeHorizontalAVX512", "resizeHorizontalAVX512 is resizeHorizontalAVX2, but that it writes every group exactly.")
	mask, squeeze, pixels := vectors(2), ZMM(), K()
	rowPairs{
		vectors: 2, // one of each row
		load: func() {
			asm.Move(first, mask[0])
			asm.Move(second, mask[1])
			asm.Move(asm.All("resizeSqueeze", squeezed()), squeeze)
			low := GP32()
			MOVL(U32(0xfff), low)
			KMOVW(low, pixels)
		},
		taps: func(rows [2]Register, at []Register, w Register, pairs int, upper, lower []VecVirtual) {
			tapsWide(rows[:], at, w, pairs, mask, upper, lower)
		},
		store: func(dst, dstStride, rows Register, _ Mem, sums []VecVirtual) {
			storeRowsWide(dst, dstStride, rows, squeeze, pixels, sums)
		},
	}.write()
}

// storeRowsWide clips, sorts and stores the pixels of both rows.
func storeRowsWide(dst, dstStride, rows Register, squeeze VecVirtual, pixels Register, sums []VecVirtual) {
	VPACKSSDW(sums[1], sums[0], sums[0])
	VPACKUSWB(sums[0], sums[0], sums[0]) // each lane: a pixel of the first row, of the second
	VPERMB(sums[0], squeeze, sums[0])
	VMOVDQU8(sums[0].AsX(), pixels, Mem{Base: dst})
	other, row := XMM(), GP64()
	VEXTRACTI32X4(U8(1), sums[0], other)
	LEAQ(Mem{Base: dst, Index: dstStride, Scale: 1}, row)
	CMPQ(rows, U8(1))
	CMOVQEQ(dst, row)
	VMOVDQU8(other, pixels, Mem{Base: row})
}

// squeezed says where the bytes of both rows' pixels lie: 12 of the first, and from 16 on 12 of the second.
func squeezed() (b [64]byte) {
	for row := range 2 {
		for i, lane := range []int{0, 2, 1, 3} {
			for c := range 3 {
				b[16*row+3*i+c] = byte(16*lane + 4*row + c)
			}
		}
	}
	return b
}

// tapsWide adds one or two tap pairs of all rows.
func tapsWide(rows, at []Register, w Register, pairs int, mask, upper, lower []VecVirtual) {
	source := vectors(len(rows))
	for r, p := range rows {
		VBROADCASTI32X4(Mem{Base: p, Index: at[0], Scale: 1}, source[r])
		for lane := 1; lane < 4; lane++ {
			VINSERTI32X4(U8(lane), Mem{Base: p, Index: at[lane], Scale: 1}, source[r], source[r])
		}
	}
	for i := range pairs {
		u, l := ZMM(), ZMM()
		VMOVDQU64(Mem{Base: w, Disp: 128 * i}, u)
		VMOVDQU64(Mem{Base: w, Disp: 128*i + 64}, l)
		for r := range rows {
			s := ZMM()
			VPSHUFB(mask[i], source[r], s)
			asm.AddProducts(u, s, upper[r])
			asm.AddProducts(l, s, lower[r])
		}
	}
}
