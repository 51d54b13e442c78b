package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// rowsAtOnce is how many rows horizontalWide makes with weights that are loaded once.
const rowsAtOnce = 2

// horizontalWide is horizontal with one vector for the four pixels of a group, in the order in which places and weights
// have them: 0, 2, 1, 3.
func horizontalWide() {
	const z = -1
	first := constant("resizeTaps01", [16]int8{0, z, 3, z, 1, z, 4, z, 2, z, 5, z, z, z, z, z})
	second := constant("resizeTaps23", [16]int8{6, z, 9, z, 7, z, 10, z, 8, z, 11, z, z, z, z, z})

	TEXT("resizeHorizontalAVX512", NOSPLIT,
		"func(dst *byte, dstStride int, src *byte, srcStride int, rows int, weights *int32, places *int32, groups, pairs int)")
	Pragma("noescape")
	Doc("resizeHorizontalAVX512 is resizeHorizontalAVX2, but that it writes every group exactly.")
	src, dst := GP64(), GP64()
	srcStride, dstStride := Load(Param("srcStride"), GP64()), Load(Param("dstStride"), GP64())
	weights, places := Load(Param("weights"), GP64()), Load(Param("places"), GP64())
	half := broadcast(1 << (weightBits - 1))
	mask := vectors(2)
	VMOVDQU64(first, mask[0])
	VMOVDQU64(second, mask[1])
	squeeze, pixels := ZMM(), K()
	VMOVDQU64(asm.All("resizeSqueeze", squeezed()), squeeze)
	low := GP32()
	MOVL(U32(0xfff), low)
	KMOVW(low, pixels)
	groups, pairs := param("groups"), param("pairs")

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
	upper, lower := vectors(rowsAtOnce), vectors(rowsAtOnce)
	for i := range upper {
		asm.Zero(upper[i])
		asm.Move(half, lower[i])
	}
	p, q, w, n := GP64(), GP64(), GP64(), GP64()
	MOVQ(src, p)
	LEAQ(Mem{Base: src, Index: srcStride, Scale: 1}, q)
	CMPQ(rows, U8(1))
	CMOVQEQ(p, q) // an odd last row is made twice
	MOVQ(weights, w)
	MOVQ(pairs, n)
	SUBQ(U8(2), n)
	JLT(LabelRef("single"))

	Label("taps")
	tapsWide([]Register{p, q}, at, w, 2, mask, upper, lower)
	ADDQ(U8(12), p)
	ADDQ(U8(12), q)
	ADDQ(U32(256), w)
	SUBQ(U8(2), n)
	JGE(LabelRef("taps"))

	Label("single")
	CMPQ(n, I8(-1))
	JNE(LabelRef("store"))
	tapsWide([]Register{p, q}, at, w, 1, mask, upper, lower)

	Label("store")
	finish(upper, lower)
	VPACKSSDW(upper[1], upper[0], upper[0])
	VPACKUSWB(upper[0], upper[0], upper[0]) // each lane: a pixel of the first row, of the second
	VPERMB(upper[0], squeeze, upper[0])
	VMOVDQU8(upper[0].AsX(), pixels, Mem{Base: dst})
	other, row := XMM(), GP64()
	VEXTRACTI32X4(U8(1), upper[0], other)
	LEAQ(Mem{Base: dst, Index: dstStride, Scale: 1}, row)
	CMPQ(rows, U8(1))
	CMOVQEQ(dst, row)
	VMOVDQU8(other, pixels, Mem{Base: row})
	LEAQ(Mem{Base: src, Index: srcStride, Scale: 2}, src)
	LEAQ(Mem{Base: dst, Index: dstStride, Scale: 2}, dst)
	SUBQ(U8(rowsAtOnce), rows)
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

// squeezed says where the bytes of both rows' pixels lie: 12 of the first, and from 16 on 12 of the second.
func squeezed() (b [64]byte) {
	for row := range rowsAtOnce {
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
