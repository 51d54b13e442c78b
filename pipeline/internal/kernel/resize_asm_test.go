//go:build amd64 && !purego

package kernel

import (
	"bytes"
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

// mixes are the kernels that mix two rows, by the fewest samples that they take.
var mixes = map[int]func(dst, first, second *byte, weight, n int){32: mixRowsAVX2, 64: mixRowsAVX512}

// All samples of two rows are mixed as Go sums them.
func TestVectorsMixAsGoDoes(t *testing.T) {
	skipWithoutVectors(t)
	r := rand.New(rand.NewPCG(7, 7))
	weights := []int32{0, 1, 1<<15 - 1, 1 << 15, 1<<15 + 1, 1<<16 - 1, 1 << 16, 1 << 21, 1<<22 - 1<<15, 1<<22 - 1, 1 << 22}
	for range 100 {
		weights = append(weights, r.Int32N(1<<22))
	}
	const n = 1 << 16
	src, want, got := make([]byte, 2*n), make([]byte, n), make([]byte, n)
	for i := range n {
		src[i], src[n+i] = byte(i), byte(i>>8)
	}
	for _, w := range weights {
		verticalClipped(want, src, n, []int32{1<<22 - w, w})
		for least, mix := range mixes {
			if least == 64 && Levels()[0] != AVX512 {
				continue
			}
			clear(got)
			if mix(&got[0], &src[0], &src[n], int(w), n); !bytes.Equal(got, want) {
				t.Fatalf("%d samples at a time, weight %d: other samples", least, w)
			}
		}
	}
}

// What is mixed is a row's samples, and none beside them.
func TestMixesInBounds(t *testing.T) {
	skipWithoutVectors(t)
	r := rand.New(rand.NewPCG(8, 8))
	for least, mix := range mixes {
		if least == 64 && Levels()[0] != AVX512 {
			continue
		}
		for n := least; n < 4*least; n++ {
			for _, guard := range []func(testing.TB, []byte) []byte{guardtest.Copy, guardtest.CopyAfter} {
				first, second, dst := guard(t, resizeBytes(r, n)), guard(t, resizeBytes(r, n)), guard(t, make([]byte, n))
				mix(&dst[0], &first[0], &second[0], 1<<20, n)
				want := make([]byte, n)
				verticalClipped(want, append(bytes.Clone(first), second...), n, []int32{3 << 20, 1 << 20})
				if !bytes.Equal(dst, want) {
					t.Fatalf("%d samples: %v, want %v", n, dst, want)
				}
			}
		}
	}
}

// Two weights that are no mix are summed.
func TestResizeSumsWhatIsNoMix(t *testing.T) {
	src := bytes.Repeat([]byte{0, 255, 255, 0, 7}, 80)
	for _, w := range [][]int32{{3 << 21, -1 << 21}, {-1 << 21, 3 << 21}, {1 << 21, 1<<21 + 1}, {1 << 21, 1 << 20}, {1<<21 + 1<<12, 1 << 21}} {
		taps := &Taps{First: []int32{0}, Count: []int32{2}, Weights: append(w, 0, 0), Stride: 4, Span: 2}
		for _, level := range Levels() {
			v, dst, want := NewVertical(level), make([]byte, 198), make([]byte, 198)
			v.Set(taps)
			v.Row(0, dst, src, 199)
			if verticalClipped(want, src, 199, w); !bytes.Equal(dst, want) {
				t.Fatalf("%s: %v: %v, want %v", level, w, dst, want)
			}
		}
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
