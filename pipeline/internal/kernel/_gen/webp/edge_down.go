package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel/_gen/asm"
)

// plane is where four rows of a plane are: of the group that was loaded last, and of others.
type plane struct {
	stride
	at   Register
	rows map[int][]Mem
}

func planeOf(name string, s stride) *plane {
	at := asm.Pointer(name)
	return &plane{s, at, map[int][]Mem{-1: s.rows(s.last(at))}}
}

// group goes to a group's rows, one after the other from 0 on.
func (p *plane) group(k int) []Mem {
	if p.rows[k] == nil {
		if k > 0 {
			p.at = p.next(p.at)
		}
		p.rows[k] = p.stride.rows(p.at)
	}
	return p.rows[k]
}

// down filters horizontal edges, beside which lines are rows.
func (e *edges) down() {
	TEXT("filterDown", NOSPLIT, "func(y, cb, cr *byte, yStride, cStride int, s *int32, outer int)")
	Doc("filterDown filters the upper edge of a macroblock where outer is not 0, for which it reads four rows above it and changes three, and the inner",
		"horizontal ones where the strength s says so.")
	Pragma("noescape")
	yStride, cStride := strideOf("yStride"), strideOf("cStride")
	y, cb, cr := planeOf("y", yStride), planeOf("cb", cStride), planeOf("cr", cStride)
	e.load = func(group int) (v []VecVirtual) {
		for i := range 4 {
			x := loadLow("VMOVDQU", y.group(group)[i])
			if group < 2 {
				both, t := YMM(), YMM()
				VPBROADCASTQ(cb.group(group)[i], both)
				VPBROADCASTQ(cr.group(group)[i], t)
				VPBLENDD(U8(0xc0), t, both, both)
				VPBLENDD(U8(0xf0), both, x, x)
			}
			v = append(v, x)
		}
		return v
	}
	// Lines that no edge changes, those farthest from one, are not stored.
	e.store = func(group int, v []VecVirtual) {
		for i, x := range v {
			line := 4*group + i
			if line > -4 && line < 14 {
				VMOVDQU(x.AsX(), y.group(group)[i])
			}
			if line > -4 && line < 6 {
				VEXTRACTI128(U8(1), x, x.AsX())
				VMOVQ(x.AsX(), cb.group(group)[i])
				VMOVHPS(x.AsX(), cr.group(group)[i])
			}
		}
	}
	e.storeFirst = func(v []VecVirtual) { e.store(0, v) }
	e.macroblock()
}
