package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A wave makes groups of groupRows rows, each row rowLag pixels behind the one above it, so that no pixel waits for one above it.
const groupRows, rowLag = 4, 2

// wave is what a wave has of its rows: where they are, and of each group the neighbours of its next pixels, 16 bits for each byte.
type wave struct {
	dst, raw            rows
	prev, bpp           GPVirtual // prev is a pixel ahead
	left, above, corner []VecVirtual
	v, next, turned     VecVirtual // what is added to a prediction; of the row above a group its pixel of the next step; left, turned by a row
}

// rows is pointers to the next pixels of rows: to the first one of each group, and how far the second and the fourth are behind it.
type rows struct {
	at          []GPVirtual
	one, threes GPVirtual
}

// row is where the next pixel of a row is.
func (r *rows) row(i int) Mem {
	m := Mem{Base: r.at[i/groupRows], Index: r.one, Scale: uint8(i % groupRows)}
	switch m.Scale {
	case 0:
		m.Index = nil
	case 3:
		m.Index, m.Scale = r.threes, 1
	}
	return m
}

// paethRows is a kernel that undoes Paeth's filter of some groups of rows.
func paethRows(name string, groups int) {
	n := groups * groupRows
	behind := (n - 1) * rowLag
	TEXT(name, NOSPLIT, "func(dst, raw, prev *byte, n, bpp, pitch, stride int)")
	Doc(fmt.Sprintf("%s undoes Paeth's filter of %d rows, raw and those stride behind it, to dst and pitch behind it, of pixels of up to 4 bytes.", name, n),
		fmt.Sprintf("Up to %d bytes in front of each row but the first are read, and of dst written, and up to %d behind n, of prev %d.",
			4*behind, 4*behind, 4*behind+8),
		"prev may be a row of dst behind the second one.")
	Pragma("noescape")
	w := wave{prev: GP64(), bpp: GP64(), v: YMM(), next: YMM(), turned: YMM()}
	Load(Param("bpp"), w.bpp)
	w.dst, w.raw = w.rows("dst", "pitch", groups), w.rows("raw", "stride", groups)
	Load(Param("prev"), w.prev)
	for range groups {
		w.left, w.above, w.corner = append(w.left, YMM()), append(w.above, YMM()), append(w.corner, YMM())
	}
	for g := range groups {
		for _, v := range []VecVirtual{w.left[g], w.above[g], w.corner[g]} {
			VPXOR(v, v, v)
		}
	}
	VMOVD(Mem{Base: w.prev}, w.v.AsX())
	VPMOVZXBW(w.v.AsX(), w.above[0].AsX())
	ADDQ(w.bpp, w.prev)
	w.begin(name, n)
	end := GP64()
	Load(Param("n"), end)
	ADDQ(w.prev, end)
	Label("pixels")
	w.step(nil)
	CMPQ(w.prev, end)
	JCS(LabelRef("pixels"))
	VZEROUPPER()
	RET()
}

// rows loads the pointers to rows.
func (w *wave) rows(first, step string, groups int) rows {
	r := rows{one: GP64(), threes: GP64()}
	Load(Param(step), r.one)
	for range rowLag {
		SUBQ(w.bpp, r.one)
	}
	LEAQ(Mem{Base: r.one, Index: r.one, Scale: 2}, r.threes)
	for g := range groups {
		r.at = append(r.at, GP64())
		if g == 0 {
			Load(Param(first), r.at[0])
			continue
		}
		LEAQ(Mem{Base: r.at[g-1], Index: r.one, Scale: groupRows}, r.at[g])
	}
	return r
}

// begin makes pixels until the last one of n rows has begun: those in front of a row are zeros.
func (w *wave) begin(name string, n int) {
	begun := GLOBL(name+"Begun", 24)
	for i := range 2 * n {
		DATA(4*i, U32(^uint32(0)*uint32(1-i/n)))
	}
	at, left := GP64(), GP64()
	LEAQ(begun.Offset(4*(n-1)), at)
	MOVL(U32(n-1), left.As32())
	Label("begin")
	for range rowLag {
		w.step(at)
	}
	SUBQ(U8(4), at)
	DECL(left.As32())
	JNZ(LabelRef("begin"))
}

// step makes a pixel of each row. begun points to words that say which ones have begun, if not all.
func (w *wave) step(begun Register) {
	for g := range w.left {
		VMOVD(w.raw.row(g*groupRows), w.v.AsX())
		for i := 1; i < groupRows; i++ {
			VPINSRD(U8(i), w.raw.row(g*groupRows+i), w.v.AsX(), w.v.AsX())
		}
		if begun != nil {
			VPAND(Mem{Base: begun, Disp: 16 * g}, w.v.AsX(), w.v.AsX())
		}
		VPMOVZXBW(w.v.AsX(), w.v)
		if g == 0 {
			VPMOVZXBW(Mem{Base: w.prev}, w.next.AsX())
		}
		w.predict(g)
	}
	for _, p := range append(append([]GPVirtual{w.prev}, w.raw.at...), w.dst.at...) {
		ADDQ(w.bpp, p)
	}
}

// predict makes the pixels of a group. Of a = left, b = above and c = corner, the nearest to a + b - c is the greater one of a and b where 3c - a - b is
// not above the lesser one, the lesser one where that is not below the greater one, and else c. Bytes are added without a carry, so that upper halves stay
// 0. What is above the next pixels was made before these, since they are rowLag behind.
func (w *wave) predict(g int) {
	left, above, corner := w.left[g], w.above[g], w.corner[g]
	threshold, low, high, t := YMM(), YMM(), YMM(), YMM()
	VPADDW(corner, corner, threshold)
	VPADDW(corner, threshold, threshold)
	VPSUBW(above, threshold, threshold)
	VPSUBW(left, threshold, threshold)
	VPMINSW(left, above, low)
	VPMAXSW(left, above, high)
	VPERMQ(U8(0x93), left, w.turned)
	VPCMPGTW(threshold, high, t)
	VPBLENDVB(t, corner, low, t)
	VPCMPGTW(low, threshold, low)
	VPBLENDVB(low, t, high, t)
	VPADDB(w.v, t, left)
	VMOVDQA(above, corner)
	VPBLENDD(U8(3), w.next, w.turned, above)
	VMOVDQA(w.turned, w.next)
	VPACKUSWB(left, left, t)
	for i := range groupRows {
		d := w.dst.row(g*groupRows + i)
		if i == groupRows/2 {
			VEXTRACTI128(U8(1), t, t.AsX())
		}
		if i%2 == 0 {
			VMOVD(t.AsX(), d)
		} else {
			VPEXTRD(U8(1), t.AsX(), d)
		}
	}
}
