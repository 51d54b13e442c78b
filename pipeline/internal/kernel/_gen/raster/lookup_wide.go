package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// A table of 256 bytes lies in four registers. Shuffles in two of them look at the lower 7 bits of a value; its highest decides between their results.

// loadTable loads the table at an address.
func loadTable(at Mem) []VecVirtual {
	t := make([]VecVirtual, 4)
	for i := range t {
		t[i] = asm.Load(at.Offset(64 * i))
	}
	return t
}

// firstBytes is a mask of the first n < 64 bytes.
func firstBytes(n Register) Register {
	bits, mask := GP64(), K()
	MOVQ(n, RCX)
	MOVQ(U32(1), bits)
	SHLQ(CL, bits)
	DECQ(bits)
	KMOVQ(bits, mask)
	return mask
}

// eachWide loads and stores n > 0 bytes at p, 64 at a time, the last ones by a mask. look makes of some what they become.
func eachWide(p, n Register, look func(x VecVirtual) VecVirtual) {
	SUBQ(U8(64), n)
	JL(LabelRef("tail"))
	Label("group")
	asm.Move(look(asm.Load(Mem{Base: p})), Mem{Base: p})
	ADDQ(U8(64), p)
	SUBQ(U8(64), n)
	JGE(LabelRef("group"))

	Label("tail")
	ADDQ(U8(64), n)
	JZ(LabelRef("done"))
	some, x := firstBytes(n), ZMM()
	VMOVDQU8_Z(Mem{Base: p}, some, x)
	VMOVDQU8(look(x), some, Mem{Base: p})
	Label("done")
	VZEROUPPER()
	RET()
}

func lookUpBytesWide() {
	TEXT("lookUpBytesAVX512", NOSPLIT, "func(p *byte, table *[256]byte, n int)")
	Doc("lookUpBytesAVX512 replaces n > 0 bytes by those of a table.")
	Pragma("noescape")
	p, table, n := asm.Pointer("p"), asm.Pointer("table"), asm.Pointer("n")
	t := loadTable(Mem{Base: table})
	eachWide(p, n, func(x VecVirtual) VecVirtual {
		low, high, upper := ZMM(), ZMM(), K()
		asm.Move(x, low)
		asm.Move(x, high)
		VPMOVB2M(x, upper)
		VPERMI2B(t[1], t[0], low)
		VPERMI2B(t[3], t[2], high)
		VPBLENDMB(high, low, upper, low)
		return low
	})
}

// lookUpPixelsWide has a mask for each channel. Those of the next 64 bytes are the same, one channel on.
func lookUpPixelsWide() {
	TEXT("lookUpPixelsAVX512", NOSPLIT, "func(p *byte, tables *[3][256]byte, n int)")
	Doc("lookUpPixelsAVX512 replaces n > 0 bytes of pixels by those of a table for each channel.")
	Pragma("noescape")
	p, tables, n := asm.Pointer("p"), asm.Pointer("tables"), asm.Pointer("n")
	var t [3][]VecVirtual
	var channel [3]Register
	for c := range t {
		t[c], channel[c] = loadTable(Mem{Base: tables, Disp: 256 * c}), K()
		bits, every := uint64(0), GP64()
		for i := c; i < 64; i += 3 {
			bits |= 1 << i
		}
		MOVQ(U64(bits), every)
		KMOVQ(every, channel[c])
	}
	eachWide(p, n, func(x VecVirtual) VecVirtual {
		low, high, upper := ZMM(), ZMM(), K()
		asm.Move(x, low)
		asm.Move(x, high)
		VPMOVB2M(x, upper)
		for c, k := range channel {
			VPERMI2B(t[c][1], t[c][0], k, low)
			VPERMI2B(t[c][3], t[c][2], k, high)
		}
		VPBLENDMB(high, low, upper, low)
		KMOVQ(channel[2], upper)
		KMOVQ(channel[1], channel[2])
		KMOVQ(channel[0], channel[1])
		KMOVQ(upper, channel[0])
		return low
	})
}
