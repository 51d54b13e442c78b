package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// sides are the 16 rows of a macroblock's luma, and those of chroma: 8 of Cb, then 8 of Cr.
type sides struct{ luma, chroma []Mem }

// loadSides finds the rows.
func loadSides() *sides {
	r := &sides{}
	yStride, cStride := strideOf("yStride"), strideOf("cStride")
	var y Register = asm.Pointer("y")
	for i := range 4 {
		if i > 0 {
			y = yStride.next(y)
		}
		r.luma = append(r.luma, yStride.rows(y)...)
	}
	for _, name := range []string{"cb", "cr"} {
		c := asm.Pointer(name)
		r.chroma = append(append(r.chroma, cStride.rows(c)...), cStride.rows(cStride.next(c))...)
	}
	return r
}

// across filters vertical edges, beside which lines are columns: all groups but −1 are in memory between the edges.
func (e *edges) across() {
	TEXT("filterAcross", 0, "func(y, cb, cr *byte, yStride, cStride int, s *int32, outer int)")
	Doc("filterAcross filters the left edge of a macroblock where outer is not 0, for which it reads and writes four columns to the left of it, and the inner",
		"vertical ones where the strength s says so.")
	Pragma("noescape")
	r := loadSides()
	left, right := AllocLocal(8*line), AllocLocal(4*line)
	e.load = func(group int) []VecVirtual {
		switch group {
		case -1:
			return r.loadFour(-4)
		case 0:
			v := columns(r.left)
			keep(v[4:], left.Offset(4*line))
			return v[:4]
		case 1:
			return kept(left.Offset(4*line), 4)
		case 2:
			v := columns(r.right)
			keep(v[4:], right)
			return v[:4]
		}
		return kept(right, 4)
	}
	var third []VecVirtual
	e.store = func(group int, v []VecVirtual) {
		switch group {
		case -1:
			r.storeFour(v, -4)
		case 2:
			third = v
		case 3:
			for i, x := range rows(append(third, v...)) {
				VMOVDQU(x.AsX(), right.Offset(16*i))
			}
			r.storeRows(rows(kept(left, 8)), right)
		default:
			keep(v, left.Offset(4*group*line))
		}
	}
	e.storeFirst = func(v []VecVirtual) { r.storeFour(v, 0) }
	e.macroblock()
}

// keep stores lines in memory, kept loads n.
func keep(v []VecVirtual, to Mem) {
	for i, x := range v {
		VMOVDQU(x, to.Offset(i*line))
	}
}

func kept(from Mem, n int) []VecVirtual {
	v := ymms(n)
	for i, x := range v {
		VMOVDQU(from.Offset(i*line), x)
	}
	return v
}

// left loads the first 8 pixels of a row of luma, and those of chroma.
func (r *sides) left(i int) VecVirtual {
	v, c := loadLow("VMOVQ", r.luma[i]), YMM()
	VPBROADCASTQ(r.chroma[i], c)
	VPBLENDD(U8(0xf0), c, v, v)
	return v
}

// right loads the last 8 pixels of a row of luma.
func (r *sides) right(i int) VecVirtual { return loadLow("VMOVQ", r.luma[i].Offset(8)) }

// columns are those of 16 rows of 8 pixels.
func columns(row func(i int) VecVirtual) []VecVirtual {
	half := func(first int) []VecVirtual {
		var pairs []VecVirtual
		for i := first; i < first+8; i += 4 {
			a, b := row(i), row(i+2)
			VPUNPCKLBW(row(i+1), a, a)
			VPUNPCKLBW(row(i+3), b, b)
			low, up := YMM(), YMM()
			VPUNPCKLWD(b, a, low)
			VPUNPCKHWD(b, a, up)
			pairs = append(pairs, low, up)
		}
		v := ymms(4)
		VPUNPCKLDQ(pairs[2], pairs[0], v[0])
		VPUNPCKHDQ(pairs[2], pairs[0], v[1])
		VPUNPCKLDQ(pairs[3], pairs[1], v[2])
		VPUNPCKHDQ(pairs[3], pairs[1], v[3])
		return v
	}
	first, second := half(0), half(8)
	v := ymms(8)
	for k := range 4 {
		VPUNPCKLQDQ(second[k], first[k], v[2*k])
		VPUNPCKHQDQ(second[k], first[k], v[2*k+1])
	}
	return v
}

// rows is the reverse of columns: pairs of rows.
func rows(v []VecVirtual) []VecVirtual {
	var low, up []VecVirtual
	for k := 0; k < 8; k += 2 {
		a, b := YMM(), YMM()
		VPUNPCKLBW(v[k+1], v[k], a)
		VPUNPCKHBW(v[k+1], v[k], b)
		low, up = append(low, a), append(up, b)
	}
	var out []VecVirtual
	for _, p := range [][]VecVirtual{low, up} {
		q := ymms(4)
		VPUNPCKLWD(p[1], p[0], q[0])
		VPUNPCKHWD(p[1], p[0], q[1])
		VPUNPCKLWD(p[3], p[2], q[2])
		VPUNPCKHWD(p[3], p[2], q[3])
		for k := range 2 {
			a, b := YMM(), YMM()
			VPUNPCKLDQ(q[2+k], q[k], a)
			VPUNPCKHDQ(q[2+k], q[k], b)
			out = append(out, a, b)
		}
	}
	return out
}

// storeRows stores pairs of rows, of which the last 8 pixels of luma are in memory: whole rows, as filterDown loads them next.
func (r *sides) storeRows(v []VecVirtual, right Mem) {
	for i, x := range v {
		t := XMM()
		VPUNPCKLQDQ(right.Offset(16*i), x.AsX(), t)
		VMOVDQU(t, r.luma[2*i])
		VPUNPCKHQDQ(right.Offset(16*i), x.AsX(), t)
		VMOVDQU(t, r.luma[2*i+1])
		VEXTRACTI128(U8(1), x, t)
		VMOVQ(t, r.chroma[2*i])
		VMOVHPS(t, r.chroma[2*i+1])
	}
}

// loadFour loads four columns of pixels that are so far to the right.
func (r *sides) loadFour(at int) []VecVirtual {
	turn := GLOBL("edgeTurn", 24)
	for i := range line {
		DATA(i, U8(i%4*4+i/4%4))
	}
	low, up := ymms(2), ymms(2)
	for k := range 2 {
		var groups [2]VecVirtual
		for i := range groups {
			v, c := fourRows(r.luma[8*k+4*i:], at), fourRows(r.chroma[8*k+4*i:], at)
			VINSERTI128(U8(1), c.AsX(), v, v)
			VPSHUFB(turn, v, v)
			groups[i] = v
		}
		VPUNPCKLDQ(groups[1], groups[0], low[k])
		VPUNPCKHDQ(groups[1], groups[0], up[k])
	}
	v := ymms(4)
	for i, p := range [][]VecVirtual{low, up} {
		VPUNPCKLQDQ(p[1], p[0], v[2*i])
		VPUNPCKHQDQ(p[1], p[0], v[2*i+1])
	}
	return v
}

// fourRows loads four pixels of each of four rows.
func fourRows(rows []Mem, at int) VecVirtual {
	v := loadLow("VMOVD", rows[0].Offset(at))
	for i := 1; i < 4; i++ {
		VPINSRD(U8(i), rows[i].Offset(at), v.AsX(), v.AsX())
	}
	return v
}

// storeFour is the reverse of loadFour.
func (r *sides) storeFour(v []VecVirtual, at int) {
	low, up := ymms(2), ymms(2)
	for k := range 2 {
		VPUNPCKLBW(v[2*k+1], v[2*k], low[k])
		VPUNPCKHBW(v[2*k+1], v[2*k], up[k])
	}
	for i, p := range [][]VecVirtual{low, up} {
		a, b := YMM(), YMM()
		VPUNPCKLWD(p[1], p[0], a)
		VPUNPCKHWD(p[1], p[0], b)
		for k, x := range []VecVirtual{a, b} {
			first := 8*i + 4*k
			storeFourRows(x, r.luma[first:], at)
			VEXTRACTI128(U8(1), x, x.AsX())
			storeFourRows(x, r.chroma[first:], at)
		}
	}
}

// storeFourRows is the reverse of fourRows.
func storeFourRows(v VecVirtual, rows []Mem, at int) {
	VMOVD(v.AsX(), rows[0].Offset(at))
	for i := 1; i < 4; i++ {
		VPEXTRD(U8(i), v.AsX(), rows[i].Offset(at))
	}
}
