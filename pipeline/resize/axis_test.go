package resize

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// guardedInts are n numbers, none of them 0, beside an inaccessible page: before it, or else behind it.
func guardedInts(t *testing.T, n int, before bool) []int32 {
	b := make([]byte, 4*n)
	for i := range b {
		b[i] = 0xa5
	}
	if before {
		b = guardtest.Copy(t, b)
	} else {
		b = guardtest.CopyAfter(t, b)
	}
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Vectors make the same taps as the scalar loops, inside of the memory they are given.
func TestVectorsMakeTheScalarTaps(t *testing.T) {
	if !kernel.Vector(kernel.Levels()[0]) {
		t.Skip("no vectors")
	}
	r := rand.New(rand.NewPCG(21, 1))
	var scalar axis
	trimmed, side := 0, func(most int) int { return 1 + r.IntN(1+r.IntN(most)) }
	for k := range 6000 {
		in, out := side(900), side(900)
		if k%100 == 0 {
			in = side(1 << 20)
		}
		from := r.IntN(out)
		to := from + 1 + r.IntN(out-from)
		if in == out {
			continue
		}
		scalar.planOutputs(Method{}, in, out, from, to, false, false)
		stride := scalar.taps.Stride
		vector := axis{vector: true, taps: kernel.Taps{
			First: guardedInts(t, to-from, k%2 == 0), Count: guardedInts(t, to-from, k%2 == 0),
			Weights: guardedInts(t, (to-from)*stride, k%2 == 0),
		}}
		vector.planOutputs(Method{Filter: Bilinear}, in, out, from, to, false, false)
		for j, s := range scalar.spans[:to-from] {
			if s.begin < scalar.lo+int(scalar.taps.First[j]) {
				trimmed++
			}
		}
		sameAxis(t, &vector, &scalar)
		if t.Failed() {
			t.Fatalf("%d → %d, outputs %d … %d", in, out, from, to)
		}
	}
	if trimmed < 100 {
		t.Errorf("%d outputs began with a weight of 0", trimmed)
	}
}

func sameAxis(t *testing.T, got, want *axis) {
	t.Helper()
	if got.lo != want.lo || got.hi != want.hi || got.longest != want.longest {
		t.Errorf("needs %d … %d, up to %d for an output; want %d … %d, %d", got.lo, got.hi, got.longest, want.lo, want.hi, want.longest)
	}
	g, w := &got.taps, &want.taps
	if !slices.Equal(g.First, w.First) || !slices.Equal(g.Count, w.Count) || !slices.Equal(g.Weights, w.Weights) {
		t.Errorf("taps %v %v %v, want %v %v %v", g.First, g.Count, g.Weights, w.First, w.Count, w.Weights)
	}
	if g.Stride != w.Stride || g.Span != w.Span {
		t.Errorf("stride %d, span %d; want %d, %d", g.Stride, g.Span, w.Stride, w.Span)
	}
}

// Where vectors cannot be used, the scalar loops are.
func TestVectorsLeaveOtherAxesAlone(t *testing.T) {
	for _, c := range []struct {
		in, out, from, to int
		mirror            bool
		method            Method
	}{
		{in: 10, out: 30, from: 0, to: 3},
		{in: 10, out: 30, from: 0, to: 30, mirror: true},
		{in: 1<<31 - 1, out: 1 << 30, from: 1<<30 - 20, to: 1 << 30},
		{in: 10, out: 30, from: 0, to: 30, method: Method{Filter: Bicubic}},
		{in: 30, out: 10, from: 0, to: 10, method: Method{Tensor: true}},
		{in: 30, out: 10, from: 0, to: 10, method: Method{Tensor: true, Aliased: true}},
	} {
		vector, scalar := axis{vector: kernel.Vector(kernel.Levels()[0])}, axis{}
		for _, a := range []*axis{&vector, &scalar} {
			a.planOutputs(c.method, c.in, c.out, c.from, c.to, c.mirror, false)
		}
		sameAxis(t, &vector, &scalar)
		if t.Failed() {
			t.Fatalf("%+v", c)
		}
	}
}
