package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// Sixteen pixels on a line that is not steep come from 64 bytes of each of four rows. Where a byte lies in these 256 is 64 times the row, and three
// times the column, and the channel.

// axis is where a group of pixels lies on one axis, in 16.16 fixed point: the least place of them, the step from one to the next, and how far behind
// the least place each of them is.
type axis struct {
	place, step GPVirtual
	behind      VecVirtual
}

// makeAxis takes the place of the first pixel and the step, for groups of so many.
func makeAxis(place, step string, lanes Mem, group GPVirtual) axis {
	a := axis{asm.Pointer(place), asm.Pointer(step), ZMM()}
	back, none, v := GP64(), GP64(), ZMM()
	XORL(none.As32(), none.As32())
	LEAQ(Mem{Base: group, Disp: -1}, back)
	IMULQ(a.step, back)
	TESTQ(back, back)
	CMOVQGT(none, back)
	ADDQ(back, a.place)
	VPBROADCASTD(a.step.As32(), a.behind)
	VPMULLD(lanes, a.behind, a.behind)
	VPBROADCASTD(back.As32(), v)
	VPSUBD(v, a.behind, a.behind)
	return a
}

// from is where the pixels are, counted from a whole place.
func (a axis) from(whole GPVirtual) VecVirtual {
	rest, v := GP64(), ZMM()
	MOVQ(whole, rest)
	SHLQ(U8(16), rest)
	NEGQ(rest)
	ADDQ(a.place, rest)
	VPBROADCASTD(rest.As32(), v)
	VPADDD(a.behind, v, v)
	return v
}

// next goes on by so many pixels.
func (a axis) next(pixels GPVirtual) {
	by := GP64()
	MOVQ(a.step, by)
	IMULQ(pixels, by)
	ADDQ(by, a.place)
}

// whole is the least place, rounded down.
func (a axis) whole() GPVirtual {
	w := GP64()
	MOVQ(a.place, w)
	SARQ(U8(16), w)
	return w
}

// gatherConstants are those of gatherWide, in registers.
type gatherConstants struct{ column, row, pixel, channel VecVirtual }

func makeGatherConstants() gatherConstants {
	var pixel, channel [64]byte
	for i := range 48 {
		pixel[i], channel[i] = byte(4*(i/3)), byte(i%3)
	}
	return gatherConstants{
		asm.Load(asm.Words("gatherColumn", 0, 3)), asm.Load(asm.Words("gatherRow", 0, 64)),
		asm.Load(asm.All("gatherPixel", pixel)), asm.Load(asm.All("gatherChannel", channel)),
	}
}

// bytesAt is where the bytes of pixels at x and y lie.
func (g gatherConstants) bytesAt(x, y VecVirtual) VecVirtual {
	at := ZMM()
	VPMADDWD(g.column, x, at)
	asm.AddProducts(g.row, y, at)
	VPERMB(at, g.pixel, at)
	VPADDB(g.channel, at, at)
	return at
}

func gatherWide() {
	TEXT("gatherAVX512", NOSPLIT, "func(dst, src *byte, stride, last, x, y, dx, dy, n, group int)")
	Doc("gatherAVX512 fills n pixels with those at x, y, x+dx, y+dy, … of src, in 16.16 fixed point: groups of 2 to 16, and at most n, the last of which",
		"overlaps the one before. Between the first and the last of a group lie at most 20 pixels and 3 rows. For each it reads 64 bytes in each of four",
		"rows, from the leftmost of its pixels on, and from row last on at most.")
	Pragma("noescape")
	dst, src, stride, last := asm.Pointer("dst"), asm.Pointer("src"), asm.Pointer("stride"), asm.Pointer("last")
	lanes := GLOBL("gatherLanes", 24)
	for i := range 16 {
		DATA(4*i, U32(uint32(i)))
	}
	n, group := asm.Pointer("n"), asm.Pointer("group")
	x, y := makeAxis("x", "dx", lanes, group), makeAxis("y", "dy", lanes, group)
	g, count := makeGatherConstants(), GP64()
	LEAQ(Mem{Base: group, Index: group, Scale: 2}, count)
	some := firstBytes(count)

	Label("group")
	column, row, p := x.whole(), y.whole(), GP64()
	CMPQ(row, last)
	CMOVQGT(last, row)
	at := g.bytesAt(x.from(column), y.from(row))
	LEAQ(Mem{Base: column, Index: column, Scale: 2}, column)
	IMULQ(stride, row)
	LEAQ(Mem{Base: src, Index: row, Scale: 1}, p)
	ADDQ(column, p)
	VMOVDQU8(lookUpRows(p, stride, at), some, Mem{Base: dst})

	SUBQ(group, n)
	JZ(LabelRef("done"))
	step := GP64()
	MOVQ(group, step)
	CMPQ(n, step)
	CMOVQLT(n, step) // the last pixels overlap the ones before
	CMOVQLT(group, n)
	x.next(step)
	y.next(step)
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, step)
	ADDQ(step, dst)
	JMP(LabelRef("group"))
	Label("done")
	VZEROUPPER()
	RET()
}

// lookUpRows looks bytes up in the four rows from p on.
func lookUpRows(p, stride GPVirtual, at VecVirtual) VecVirtual {
	upper, lower, isLower, pair := ZMM(), ZMM(), K(), GP64()
	LEAQ(Mem{Base: p, Index: stride, Scale: 2}, pair)
	asm.Move(Mem{Base: p}, upper)
	asm.Move(Mem{Base: pair}, lower)
	VPERMT2B(Mem{Base: p, Index: stride, Scale: 1}, at, upper)
	VPERMT2B(Mem{Base: pair, Index: stride, Scale: 1}, at, lower)
	VPMOVB2M(at, isLower)
	VPBLENDMB(lower, upper, isLower, upper)
	return upper
}
