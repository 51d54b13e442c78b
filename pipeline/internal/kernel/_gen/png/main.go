// Command png writes the AVX2 assembly of package png: the filters of rows undone, and sums of bytes for Adler-32. Run
// it through `go generate` in package png.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!purego")
	up()
	sub()
	average()
	paeth()
	paethRows("unfilterPaeth4", 1)
	paethRows("unfilterPaeth8", 2)
	adler()
	Generate()
}

// row is what each kernel of a row has: its pointers, which move along, and how many bytes are left.
type row struct {
	dst, raw, prev Register
	left, bpp      GPVirtual
}

// pixels begins a kernel that makes one pixel of up to 8 bytes after the other, and returns what it works on.
func pixels(name, doc string, above bool) row {
	TEXT(name, NOSPLIT, "func(dst, raw, prev *byte, n, bpp int)")
	Doc(doc)
	Pragma("noescape")
	r := row{dst: Load(Param("dst"), GP64()), raw: Load(Param("raw"), GP64())}
	if above {
		r.prev = Load(Param("prev"), GP64())
	}
	r.left, r.bpp = Load(Param("n"), GP64()).(GPVirtual), Load(Param("bpp"), GP64()).(GPVirtual)
	return r
}

// step moves on to the next pixel, and begins again while there is one.
func (r row) step() {
	ADDQ(r.bpp, r.dst)
	ADDQ(r.bpp, r.raw)
	if r.prev != nil {
		ADDQ(r.bpp, r.prev)
	}
	SUBQ(r.bpp, r.left)
	JG(LabelRef("pixel"))
	RET()
}

func up() {
	TEXT("unfilterUp", NOSPLIT, "func(dst, raw, prev *byte, n int)")
	Doc("unfilterUp adds n bytes of the row above, 32 at a time: up to 31 more are read and written.")
	Pragma("noescape")
	dst, raw, prev := Load(Param("dst"), GP64()), Load(Param("raw"), GP64()), Load(Param("prev"), GP64())
	n := Load(Param("n"), GP64()).(GPVirtual)
	i, v := GP64(), YMM()
	XORQ(i, i)
	Label("group")
	VMOVDQU(Mem{Base: raw, Index: i, Scale: 1}, v)
	VPADDB(Mem{Base: prev, Index: i, Scale: 1}, v, v)
	VMOVDQU(v, Mem{Base: dst, Index: i, Scale: 1})
	ADDQ(U8(32), i)
	CMPQ(i, n)
	JL(LabelRef("group"))
	VZEROUPPER()
	RET()
}

func sub() {
	r := pixels("unfilterSub", "unfilterSub adds to each pixel the one to its left. Up to 7 bytes behind n are read and written; prev is not looked at.", false)
	left, v := XMM(), XMM()
	VPXOR(left, left, left)
	Label("pixel")
	VMOVQ(Mem{Base: r.raw}, v)
	VPADDB(v, left, left)
	VMOVQ(left, Mem{Base: r.dst})
	r.step()
}

// average subtracts from the mean that VPAVGB rounds up what it rounded.
func average() {
	r := pixels("unfilterAverage", "unfilterAverage adds to each pixel the mean, rounded down, of those to its left and above. Up to 7 bytes behind n are read and written.", true)
	left, above, v, mean, odd, one := XMM(), XMM(), XMM(), XMM(), XMM(), XMM()
	VPXOR(left, left, left)
	VPCMPEQB(odd, odd, odd)
	VPSUBB(odd, left, one)
	Label("pixel")
	VMOVQ(Mem{Base: r.prev}, above)
	VMOVQ(Mem{Base: r.raw}, v)
	VPAVGB(left, above, mean)
	VPXOR(left, above, odd)
	VPAND(one, odd, odd)
	VPSUBB(odd, mean, mean)
	VPADDB(v, mean, left)
	VMOVQ(left, Mem{Base: r.dst})
	r.step()
}

// paeth has 16 bits for each byte. Sums are made byte by byte, so that their upper halves stay 0.
func paeth() {
	r := pixels("unfilterPaeth", "unfilterPaeth adds to each pixel the nearest of its neighbours to the left, above and in the corner. Up to 7 bytes behind n are read and written.", true)
	left, above, corner, v := XMM(), XMM(), XMM(), XMM()
	a, b, c := XMM(), XMM(), XMM()
	byLeft, byAbove, byCorner := XMM(), XMM(), XMM()
	out := XMM()
	VPXOR(left, left, left)
	VPXOR(corner, corner, corner)
	Label("pixel")
	VPMOVZXBW(Mem{Base: r.prev}, above)
	VPMOVZXBW(Mem{Base: r.raw}, v)
	VPSUBW(corner, above, a)
	VPSUBW(corner, left, b)
	VPADDW(a, b, c)
	VPABSW(a, a)
	VPABSW(b, b)
	VPABSW(c, c)
	VPADDB(v, left, byLeft)
	VPADDB(v, above, byAbove)
	VPADDB(v, corner, byCorner)
	VPMINSW(a, b, out)
	VPCMPGTW(b, a, a)
	VPCMPGTW(c, out, c)
	VPBLENDVB(a, byAbove, byLeft, left)
	VPBLENDVB(c, byCorner, left, left)
	VMOVDQA(above, corner)
	VPACKUSWB(left, left, out)
	VMOVQ(out, Mem{Base: r.dst})
	r.step()
}

// adler: of 32 bytes each, the plain sum and the sum weighted by 32 to 1; the sum of all before counts 32 times.
func adler() {
	weights := GLOBL("adlerWeights", 24) // RODATA | NOPTR
	for i := range 32 {
		DATA(i, U8(32-i))
	}
	ones := GLOBL("adlerOnes", 24)
	for i := range 16 {
		DATA(2*i, U16(1))
	}
	TEXT("adlerSums", NOSPLIT, "func(p *byte, groups int) (sum, weighted uint32)")
	Doc("adlerSums sums 32 bytes in each of 1 to 173 groups, and the same weighted by their distance from the end, 1 for the last.")
	Pragma("noescape")
	p := Load(Param("p"), GP64())
	left := Load(Param("groups"), GP64()).(GPVirtual)
	zero, sum, before, weighted, v, t := YMM(), YMM(), YMM(), YMM(), YMM(), YMM()
	for _, y := range []VecVirtual{zero, sum, before, weighted} {
		VPXOR(y, y, y)
	}
	Label("group")
	VMOVDQU(Mem{Base: p}, v)
	VPADDD(sum, before, before)
	VPSADBW(zero, v, t)
	VPADDD(t, sum, sum)
	VPMADDUBSW(weights, v, v)
	VPMADDWD(ones, v, v)
	VPADDD(v, weighted, weighted)
	ADDQ(U8(32), p)
	DECQ(left)
	JNZ(LabelRef("group"))
	VPSLLD(U8(5), before, before)
	VPADDD(before, weighted, weighted)
	for _, s := range []struct {
		name string
		v    VecVirtual
	}{{"sum", sum}, {"weighted", weighted}} {
		x, r := XMM(), GP32()
		VEXTRACTI128(U8(1), s.v, x)
		VPADDD(s.v.AsX(), x, x)
		high := XMM()
		VPSHUFD(U8(0x4e), x, high)
		VPADDD(high, x, x)
		VPSHUFD(U8(0xb1), x, high)
		VPADDD(high, x, x)
		VMOVD(x, r)
		Store(r, Return(s.name))
	}
	VZEROUPPER()
	RET()
}
