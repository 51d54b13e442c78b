package batch

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func TestPlace(t *testing.T) {
	fields := []Field{
		{Name: "image", DType: "uint8", Shape: []int{0, 0, 3}},
		{Name: "label", DType: "int64"},
		{Name: "mask", DType: "uint8", Shape: []int{5, 3}},
		{Name: "index", DType: "int64"},
	}
	placed, bytes := Place(fields, 9)
	var offsets, sizes []int
	for _, f := range placed {
		offsets, sizes = append(offsets, f.Offset), append(sizes, f.Bytes)
	}
	if !slices.Equal(offsets, []int{448, 0, 128, 320}) || !slices.Equal(sizes, []int{0, 72, 135, 72}) || bytes != 448 {
		t.Errorf("offsets %v, sizes %v, %d bytes", offsets, sizes, bytes)
	}
	if OffsetOf(placed, "mask") != 128 || OffsetOf(placed, "none") != -1 {
		t.Error("a field is not where it was placed")
	}
	if fields[3].Offset != 0 {
		t.Error("the caller's fields were changed")
	}
}

func TestAlignUp(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 64, 63: 64, 64: 64, 65: 128} {
		if AlignUp(n) != want || AlignUp(uint64(n)) != uint64(want) {
			t.Errorf("%d becomes %d", n, AlignUp(n))
		}
	}
}

func TestElementSize(t *testing.T) {
	for dtype, want := range map[string]int{"uint8": 1, "bool": 1, "float16": 2, "bfloat16": 2, "float32": 4, "int64": 8, "float64": 0, "": 0} {
		if n := ElementSize(dtype); n != want {
			t.Errorf("%q takes %d bytes", dtype, n)
		}
	}
}

func TestNameCheck(t *testing.T) {
	for field, n := range map[string]Name{
		"":              {Count: 3, Position: 40},
		"name":          {Count: MaxSamples + 1},
		"name.position": {Count: 2, Position: math.MaxUint64 - 1},
		"name.list[1]":  {List: []Ref{{Index: 2}, {Index: 10}}},
	} {
		var e *PlanError
		if err := n.Check(10); (field == "") != (err == nil) || err != nil && (!errors.As(err, &e) || e.Field != field) {
			t.Errorf("%+v: %v, want an error of %q", n, err, field)
		}
	}
}

func TestPart(t *testing.T) {
	n := Name{Epoch: 2, Position: 10, Count: 8, Policy: []byte("p")}
	if p := n.Part(3, 5); p.Epoch != 2 || p.Position != 13 || p.Len() != 2 || string(p.Policy) != "p" {
		t.Errorf("%+v", p)
	}
	n = Name{List: []Ref{{Index: 1}, {Index: 2}, {Index: 3}}}
	if p := n.Part(1, 3); p.Len() != 2 || p.List[0].Index != 2 {
		t.Errorf("%+v", p)
	}
}

func TestPlanError(t *testing.T) {
	e := &PlanError{Field: "name", Message: "is wrong"}
	if e.Error() != "name: is wrong" {
		t.Error(e)
	}
	if e.Nearest = "x"; e.Error() != "name: is wrong; did you mean x?" {
		t.Error(e)
	}
}
