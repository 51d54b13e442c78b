package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// difference is |a − b|.
func difference(a, b VecVirtual) VecVirtual {
	d, t := XMM(), XMM()
	VPSUBUSB(a, b, d)
	VPSUBUSB(b, a, t)
	VPOR(t, d, d)
	return d
}

// eighth divides signed bytes by 8, rounded down.
func eighth(x, zero VecVirtual) {
	t := XMM()
	VPUNPCKLBW(x, zero, t)
	VPUNPCKHBW(x, zero, x)
	VPSRAW(U8(11), t, t)
	VPSRAW(U8(11), x, x)
	VPACKSSWB(x, t, x)
}

// edge filters 16 places of an edge between two rows, as section 15 of RFC 6386 says, in bytes of which 128 is taken off.
func edge() {
	high, even := bytes("edgeHigh", 0x80), bytes("edgeEven", 0xfe)
	three, four, half := bytes("edge3", 3), bytes("edge4", 4), bytes("edge64", 64)
	nine, rounding := asm.Words("edge9", 9<<8), asm.Words("edge63", 63)

	TEXT("edgeRows", NOSPLIT, "func(q0 *byte, stride, limit, interior, variance, inner int)")
	Doc("edgeRows filters 16 columns of the edge between the rows before q0 and q0's: four rows are read on each side, three are written.")
	Pragma("noescape")
	q0, stride := asm.Pointer("q0"), asm.Pointer("stride")
	p3, three3 := GP64(), GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three3)
	MOVQ(q0, p3)
	SUBQ(three3, p3)
	SUBQ(stride, p3)
	at := func(base Register, k int) Mem {
		switch k {
		case 0:
			return Mem{Base: base}
		case 3:
			return Mem{Base: base, Index: three3, Scale: 1}
		}
		return Mem{Base: base, Index: stride, Scale: uint8(k)}
	}
	v := xmms(8) // p3 to p0, q0 to q3
	for k := range 4 {
		VMOVDQU(at(p3, k), v[k])
		VMOVDQU(at(q0, k), v[4+k])
	}
	zero := XMM()
	VPXOR(zero, zero, zero)
	// Where the edge is filtered, and where the variance is not high.
	mask, calm := XMM(), XMM()
	VPMAXUB(difference(v[2], v[3]), difference(v[5], v[4]), calm)
	VPMAXUB(difference(v[0], v[1]), calm, mask)
	VPMAXUB(difference(v[1], v[2]), mask, mask)
	VPMAXUB(difference(v[7], v[6]), mask, mask)
	VPMAXUB(difference(v[6], v[5]), mask, mask)
	VPSUBUSB(broadcast("interior"), mask, mask)
	VPCMPEQB(zero, mask, mask)
	VPSUBUSB(broadcast("variance"), calm, calm)
	VPCMPEQB(zero, calm, calm)
	across, outer := difference(v[3], v[4]), difference(v[2], v[5])
	VPAND(even, outer, outer)
	VPSRLW(U8(1), outer, outer)
	VPADDUSB(across, across, across)
	VPADDUSB(outer, across, across)
	VPSUBUSB(broadcast("limit"), across, across)
	VPCMPEQB(zero, across, across)
	VPAND(across, mask, mask)
	for _, x := range v[1:7] {
		VPXOR(high, x, x)
	}
	a, d := XMM(), XMM()
	VPSUBSB(v[5], v[2], a)
	VPSUBSB(v[3], v[4], d)
	inner := asm.Pointer("inner")
	TESTQ(inner, inner)
	JZ(LabelRef("six"))
	filterInner(v, a, d, mask, calm, zero, [4]Mem{three, four, half, high})
	for k, m := range []Mem{at(p3, 2), at(p3, 3), at(q0, 0), at(q0, 1)} {
		VPXOR(high, v[2+k], v[2+k])
		VMOVDQU(v[2+k], m)
	}
	RET()
	Label("six")
	filterOuter(v, a, d, mask, calm, zero, [4]Mem{three, four, nine, rounding})
	for k, m := range []Mem{at(p3, 1), at(p3, 2), at(p3, 3), at(q0, 0), at(q0, 1), at(q0, 2)} {
		VPXOR(high, v[1+k], v[1+k])
		VMOVDQU(v[1+k], m)
	}
	RET()
}

// addThrice adds three times d to a, and clears it outside of the mask.
func addThrice(a, d, mask VecVirtual) {
	for range 3 {
		VPADDSB(d, a, a)
	}
	VPAND(mask, a, a)
}

// filterInner changes two pixels on each side, or one where the variance is high.
func filterInner(v []VecVirtual, a, d, mask, calm, zero VecVirtual, c [4]Mem) {
	VPANDN(a, calm, a)
	addThrice(a, d, mask)
	b := XMM()
	VPADDSB(c[0], a, b)
	VPADDSB(c[1], a, a)
	eighth(b, zero)
	eighth(a, zero)
	VPADDSB(b, v[3], v[3])
	VPSUBSB(a, v[4], v[4])
	VPXOR(c[3], a, a) // half of it, rounded up
	VPAVGB(zero, a, a)
	VPSUBB(c[2], a, a)
	VPAND(calm, a, a)
	VPADDSB(a, v[2], v[2])
	VPSUBSB(a, v[5], v[5])
}

// filterOuter changes three pixels on each side, or one where the variance is high.
func filterOuter(v []VecVirtual, a, d, mask, calm, zero VecVirtual, c [4]Mem) {
	addThrice(a, d, mask)
	f, b := XMM(), XMM()
	VPANDN(a, calm, f)
	VPAND(calm, a, a)
	VPADDSB(c[0], f, b)
	VPADDSB(c[1], f, f)
	eighth(b, zero)
	eighth(f, zero)
	VPADDSB(b, v[3], v[3])
	VPSUBSB(f, v[4], v[4])
	// 9, 18 and 27 parts of 128, rounded.
	step, sum := xmms(2), xmms(2)
	VPUNPCKLBW(a, zero, step[0])
	VPUNPCKHBW(a, zero, step[1])
	for k := range step {
		VPMULHW(c[2], step[k], step[k])
		VPADDW(c[3], step[k], sum[k])
	}
	for k := range 3 {
		if k > 0 {
			for i := range sum {
				VPADDW(step[i], sum[i], sum[i])
			}
		}
		low, up := XMM(), XMM()
		VPSRAW(U8(7), sum[0], low)
		VPSRAW(U8(7), sum[1], up)
		VPACKSSWB(up, low, low)
		VPADDSB(low, v[1+k], v[1+k])
		VPSUBSB(low, v[6-k], v[6-k])
	}
}

// turn makes 8 rows of 16 bytes of 16 rows of 8.
func turn() {
	TEXT("turnRows", NOSPLIT, "func(dst *[8][16]byte, src *byte, stride int)")
	Doc("turnRows makes rows of the 8 columns of 16 rows.")
	Pragma("noescape")
	dst, src, stride := asm.Pointer("dst"), asm.Pointer("src"), asm.Pointer("stride")
	three := GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, three)
	half := func() []VecVirtual {
		var pairs []VecVirtual
		for range 2 {
			a, b, t := XMM(), XMM(), XMM()
			VMOVQ(Mem{Base: src}, a)
			VMOVQ(Mem{Base: src, Index: stride, Scale: 1}, t)
			VPUNPCKLBW(t, a, a)
			VMOVQ(Mem{Base: src, Index: stride, Scale: 2}, b)
			VMOVQ(Mem{Base: src, Index: three, Scale: 1}, t)
			VPUNPCKLBW(t, b, b)
			LEAQ(Mem{Base: src, Index: stride, Scale: 4}, src)
			low, up := XMM(), XMM()
			VPUNPCKLWD(b, a, low)
			VPUNPCKHWD(b, a, up)
			pairs = append(pairs, low, up)
		}
		out := xmms(4)
		VPUNPCKLDQ(pairs[2], pairs[0], out[0])
		VPUNPCKHDQ(pairs[2], pairs[0], out[1])
		VPUNPCKLDQ(pairs[3], pairs[1], out[2])
		VPUNPCKHDQ(pairs[3], pairs[1], out[3])
		return out
	}
	first, second := half(), half()
	for k := range 4 {
		t := XMM()
		VPUNPCKLQDQ(second[k], first[k], t)
		VMOVDQU(t, Mem{Base: dst, Disp: 32 * k})
		VPUNPCKHQDQ(second[k], first[k], t)
		VMOVDQU(t, Mem{Base: dst, Disp: 32*k + 16})
	}
	RET()
}

// turnBack is the reverse of turn, eight rows at a time.
func turnBack() {
	TEXT("turnColumns", NOSPLIT, "func(dst *byte, src *[8][16]byte, stride int)")
	Doc("turnColumns makes 16 rows of 8 columns of rows.")
	Pragma("noescape")
	dst, src, stride := asm.Pointer("dst"), asm.Pointer("src"), asm.Pointer("stride")
	for half := range 2 {
		var pairs []VecVirtual
		for k := range 4 {
			a, b := XMM(), XMM()
			VMOVQ(Mem{Base: src, Disp: 32*k + 8*half}, a)
			VMOVQ(Mem{Base: src, Disp: 32*k + 16 + 8*half}, b)
			VPUNPCKLBW(b, a, a)
			pairs = append(pairs, a)
		}
		q := xmms(4)
		VPUNPCKLWD(pairs[1], pairs[0], q[0])
		VPUNPCKHWD(pairs[1], pairs[0], q[1])
		VPUNPCKLWD(pairs[3], pairs[2], q[2])
		VPUNPCKHWD(pairs[3], pairs[2], q[3])
		for k := range 2 {
			low, up := XMM(), XMM()
			VPUNPCKLDQ(q[2+k], q[k], low)
			VPUNPCKHDQ(q[2+k], q[k], up)
			for _, x := range []VecVirtual{low, up} {
				VMOVQ(x, Mem{Base: dst})
				VPEXTRQ(U8(1), x, Mem{Base: dst, Index: stride, Scale: 1})
				LEAQ(Mem{Base: dst, Index: stride, Scale: 2}, dst)
			}
		}
	}
	RET()
}
