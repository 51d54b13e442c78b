package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// What it knows of package vp8, where a test compares it.
const (
	windowBits, windowValid, windowAt = 0, 8, 16

	copiedCodeBits = 11
	copiedEnd      = 16 * 25
	blockBytes     = 32
	lumaPairs      = 8 // of blocks
	pixelPairs     = 12
)

// copied writes what the coefficients of copies are read by.
func copied() {
	readCopied()
	scaleBlocks()
}

// copiedCode is the registers of readCopied.
type copiedCode struct{ bits, valid, next, at, table, places, out, entry, rest, v, n GPVirtual }

func readCopied() {
	TEXT("readCopied", NOSPLIT, "func(w *uint64, data *byte, table *uint64, places *uint16, coefficients *int16, at int)")
	Doc("readCopied reads the coefficients of a macroblock from place at on, as a window of data has them, of which 1280 bytes are left at least.")
	Pragma("noescape")
	c := &copiedCode{GP64(), GP64(), GP64(), asm.Pointer("at"), asm.Pointer("table"), asm.Pointer("places"), asm.Pointer("coefficients"), GP64(), GP64(), GP64(), GP64()}
	w := asm.Pointer("w")
	MOVQ(Mem{Base: w, Disp: windowBits}, c.bits)
	MOVQ(Mem{Base: w, Disp: windowValid}, c.valid)
	MOVQ(Mem{Base: w, Disp: windowAt}, c.next)
	ADDQ(asm.Param("data"), c.next)
	Label("refill")
	c.refill()
	c.symbol()
	JGE(LabelRef("read"))
	c.symbol()
	JLT(LabelRef("refill"))
	Label("read")
	SUBQ(asm.Param("data"), c.next)
	MOVQ(c.bits, Mem{Base: w, Disp: windowBits})
	MOVQ(c.valid, Mem{Base: w, Disp: windowValid})
	MOVQ(c.next, Mem{Base: w, Disp: windowAt})
	RET()
}

// refill makes 56 bits valid at least.
func (c *copiedCode) refill() {
	MOVQ(Mem{Base: c.next}, c.v)
	SHLXQ(c.valid, c.v, c.v)
	ORQ(c.v, c.bits)
	MOVQ(c.valid, c.n)
	XORQ(U8(63), c.n)
	SHRQ(U8(3), c.n)
	ADDQ(c.n, c.next)
	ORQ(U8(56), c.valid)
}

// symbol takes a symbol and the coefficient that it stands for, and compares the place behind it with the end.
func (c *copiedCode) symbol() {
	MOVL(c.bits.As32(), c.n.As32())
	ANDL(U32(1<<copiedCodeBits-1), c.n.As32())
	MOVQ(Mem{Base: c.table, Index: c.n, Scale: 8}, c.entry)
	MOVQ(c.entry, c.rest)
	SHRQ(U8(8), c.rest)
	SHRXQ(c.rest, c.bits, c.v)
	SHRXQ(c.entry, c.bits, c.bits)
	MOVBQZX(c.entry.As8(), c.n)
	SUBQ(c.n, c.valid)
	SHRQ(U8(8), c.rest)
	BZHIQ(c.rest, c.v, c.v)
	SHRQ(U8(16), c.rest)
	ADDQ(c.rest, c.v)
	SHRQ(U8(16), c.rest)
	ADDQ(c.rest, c.at)
	MOVWQZX(Mem{Base: c.places, Index: c.at, Scale: 2}, c.n)
	MOVW(c.v.As16(), Mem{Base: c.out, Index: c.n, Scale: 2})
	CMPQ(c.at, U32(copiedEnd))
}

func scaleBlocks() {
	TEXT("scaleBlocks", NOSPLIT, "func(coefficients *int16, luma, chroma, second *int32)")
	Doc("scaleBlocks multiplies the coefficients of all blocks of a macroblock by their factors.")
	Pragma("noescape")
	at := asm.Pointer("coefficients")
	block := 0
	for _, of := range []struct {
		factors string
		end     int
	}{{"luma", 2 * lumaPairs}, {"chroma", 2 * pixelPairs}, {"second", 2*pixelPairs + 1}} {
		by := factorsOf(asm.Pointer(of.factors))
		for ; block < of.end; block++ {
			v, place := YMM(), Mem{Base: at, Disp: blockBytes * block}
			VPMULLW(place, by, v)
			VMOVDQU(v, place)
		}
	}
	VZEROUPPER()
	RET()
}

// factorsOf has the factor of the first coefficient, and that of all others.
func factorsOf(factors Register) VecVirtual {
	first, others := XMM(), YMM()
	n := GP32()
	VPBROADCASTW(Mem{Base: factors, Disp: 4}, others)
	MOVL(Mem{Base: factors}, n)
	VPINSRW(U8(0), n, others.AsX(), first)
	VPBLENDD(U8(0x0f), first.AsY(), others, others)
	return others
}
