package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// mix makes a sample a·(1−weight) + b·weight of two rows by one product, as a + (b−a)·weight. The weight is
// upper<<16 + lower, where lower is signed; of the product with lower the upper word is all that shows, since the half
// that is added for rounding has zeros below it. Even and odd samples are words of different vectors.
func mix() {
	name, least := "mixRowsAVX2", 16*asm.Lanes
	if asm.Lanes == 4 {
		name = "mixRowsAVX512"
	}
	TEXT(name, NOSPLIT, "func(dst, first, second *byte, weight, n int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s makes n ≥ %d samples of one row from two: first + (second−first)·weight, where 0 ≤ weight ≤ 1<<%d is that of the",
		name, least, weightBits),
		"second, rounded as resizeVertical rounds.")
	dst, first, second := asm.Pointer("dst"), asm.Pointer("first"), asm.Pointer("second")
	low, half := broadcast(0x00ff00ff), broadcast(1<<(weightBits-17)*0x10001)
	weight := asm.Pointer("weight")
	lower := words(weight)
	ADDQ(U32(1<<15), weight)
	SHRQ(U8(16), weight)
	upper := words(weight)
	left := asm.Pointer("n")

	Label("block")
	a, b := asm.Vector(), asm.Vector()
	asm.Move(Mem{Base: first}, a)
	asm.Move(Mem{Base: second}, b)
	var sums [2]VecVirtual
	for i := range sums {
		x, y, t := asm.Vector(), asm.Vector(), asm.Vector()
		if i == 0 {
			asm.And(low, a, x)
			asm.And(low, b, y)
		} else {
			VPSRLW(U8(8), a, x)
			VPSRLW(U8(8), b, y)
		}
		VPSUBW(x, y, y)
		VPMULHW(lower, y, t)
		VPMULLW(upper, y, y)
		VPADDW(half, t, t)
		VPADDW(t, y, y)
		VPSRAW(U8(weightBits-16), y, y)
		VPADDW(x, y, y)
		sums[i] = y
	}
	VPSLLW(U8(8), sums[1], sums[1])
	asm.Or(sums[1], sums[0], sums[0])
	asm.Move(sums[0], Mem{Base: dst})
	nextBlock(left, 16*asm.Lanes, 1, dst, first, second)
	VZEROUPPER()
	RET()
}

// words is a register with the lower 16 bits of x in every word.
func words(x GPVirtual) VecVirtual {
	low, v := XMM(), asm.Vector()
	VMOVD(x.As32(), low)
	VPBROADCASTW(low, v)
	return v
}
