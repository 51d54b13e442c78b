//go:build amd64 && !purego

package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
)

// guardedInts are copies of w, one of which an inaccessible page follows and the other one of which follows one.
func guardedInts(t *testing.T, w []int32) (copies [2][]int32) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 4*len(w))
	for i, c := range [][]byte{guardtest.Copy(t, b), guardtest.CopyAfter(t, b)} {
		copies[i] = unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(c))), len(w))
	}
	return copies
}

func TestVectorsPackAsGoDoes(t *testing.T) {
	skipWithoutVectors(t)
	r := rand.New(rand.NewPCG(4, 4))
	large := 0
	for n := 8; n < 100; n += 2 {
		for range 50 {
			w := make([]int32, n)
			for i := range w {
				w[i] = r.Int32N(1<<23) - 1<<22
			}
			if k := r.IntN(n); r.IntN(2) == 0 { // about as large as fits
				edge := []int32{127<<16 + 1<<15 - 1, 127<<16 + 1<<15, -128<<16 - 1<<15, -128<<16 - 1<<15 - 1, 1<<31 - 1, -1 << 31}
				w[k], w[k^1] = edge[r.IntN(len(edge))], r.Int32N(3<<15)-3<<14
			}
			want := make([]int32, n)
			fits := packVertical(want, w)
			if !fits {
				large++
			}
			weights, packed := guardedInts(t, w), guardedInts(t, make([]int32, n))
			for i, p := range packed {
				if got := packVerticalAVX2(&p[0], &weights[i][0], n) == 0; got != fits || !slices.Equal(p, want) {
					t.Fatalf("%v: fits: %v, want %v; %v, want %v", w, got, fits, p, want)
				}
			}
		}
	}
	if large < 500 || large > 1500 {
		t.Errorf("%d do not fit", large)
	}
}

func TestVectorsGroupTapsAsGoDoes(t *testing.T) {
	skipWithoutVectors(t)
	r := rand.New(rand.NewPCG(5, 5))
	late := 0
	for k := range 1000 {
		taps := resizeTaps(r, 4+r.IntN(60), 1+r.IntN(60), 1+r.IntN(12), k%3 == 0)
		h := NewHorizontal(AVX2)
		h.Set(taps, k%2 == 0, false)
		places, packed := slices.Clone(h.places), slices.Clone(h.packed)
		for g := range h.groups {
			h.groupTaps(g)
		}
		if !slices.Equal(h.places, places) || !slices.Equal(h.packed, packed) {
			t.Fatalf("%+v: %v, want %v; %v, want %v", taps, places, h.places, packed, h.packed)
		}
		if int(slices.Max(taps.First)) > h.lastPlace() {
			late++
		}
		for i, weights := range guardedInts(t, taps.Weights) {
			guarded := *taps
			guarded.Weights, guarded.First = weights, guardedInts(t, taps.First)[i]
			h.places, h.packed = guardedInts(t, places)[i], guardedInts(t, packed)[i]
			clear(h.places)
			clear(h.packed)
			h.Set(&guarded, k%2 == 0, false)
			if !slices.Equal(h.places, places) || !slices.Equal(h.packed, packed) {
				t.Fatalf("%+v: it depends on what was there", taps)
			}
		}
	}
	if late < 100 || late > 900 {
		t.Errorf("%d have taps behind the last place", late)
	}
}

func TestHorizontalRefusesWrongTaps(t *testing.T) {
	skipWithoutVectors(t)
	for name, spoil := range map[string]func(t *Taps){
		"first":  func(t *Taps) { t.First[7] = -1 },
		"count":  func(t *Taps) { t.Count[7] = 0 },
		"stride": func(t *Taps) { t.Stride = 4; t.First[7], t.Count[7] = 0, 5 },
	} {
		taps := resizeTaps(rand.New(rand.NewPCG(6, 6)), 40, 60, 6, false)
		spoil(taps)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a wrong %s is taken", name)
				}
			}()
			NewHorizontal(AVX2).Set(taps, false, false)
		}()
	}
}

func skipWithoutVectors(t *testing.T) {
	t.Helper()
	if !Vector(Levels()[0]) {
		t.Skip("no vectors")
	}
}
