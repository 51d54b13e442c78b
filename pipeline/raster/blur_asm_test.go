//go:build amd64 && !purego

package raster

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/order"
)

// guardedValues returns n values of a type without pointers, behind which an inaccessible page lies.
func guardedValues[T byte | float32](t *testing.T, n int) []T {
	t.Helper()
	b := guardtest.Bytes(t, n*int(unsafe.Sizeof(*new(T))))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// Each kernel gives what it says, and touches nothing beyond the groups that it says.
func TestBlurKernels(t *testing.T) {
	if !hasFused(kernel.Levels()[0]) {
		t.Log("this processor has no such kernels")
		return
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 7, 8, 9, 31, 32, 33, 96, 100} {
		checkWiden(t, r, n)
		checkPairSums(t, r, n, 1+r.IntN(12))
		checkRoundSums(t, r, n)
		checkExactSums(t, r, 1+r.IntN(5), n/2|1)
	}
}

func checkWiden(t *testing.T, r *rand.Rand, n int) {
	src, dst := guardedValues[byte](t, roundUp(n, 8)), guardedValues[float32](t, roundUp(n, 8))
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	widenBytes(&dst[0], &src[0], n)
	for i := range n {
		if dst[i] != float32(src[i]) {
			t.Fatalf("value %d of %d: %v of %d", i, n, dst[i], src[i])
		}
	}
}

func checkPairSums(t *testing.T, r *rand.Rand, n, count int) {
	wide := roundUp(n, 32)
	src, dst := guardedValues[float32](t, 2*count*wide), guardedValues[float32](t, wide)
	for i := range src {
		src[i] = 255 * r.Float32()
	}
	taps, offsets := make([]float32, count), make([]int, 2*count)
	for i := range offsets {
		offsets[i] = 4 * wide * (len(offsets) - 1 - i)
		taps[i/2] = r.Float32()
	}
	pairSums(&dst[0], &src[0], &offsets[0], &taps[0], count, n)
	for i := range n {
		at := func(k int) float32 { return src[offsets[k]/4+i] }
		want := at(0) * taps[0]
		for k := 1; k < count; k++ {
			want = order.Fused(at(2*k-1)+at(2*k), taps[k], want)
		}
		if dst[i] != want {
			t.Fatalf("sum %d of %d, %d taps: %v, want %v", i, n, count, dst[i], want)
		}
	}
}

func checkRoundSums(t *testing.T, r *rand.Rand, n int) {
	const low, high = 0.125, 0.875
	wide := roundUp(n, 8)
	sums, dst, near := guardedValues[float32](t, wide), guardedValues[byte](t, wide), guardedValues[byte](t, wide/8)
	for i := range sums {
		if sums[i] = 255 * r.Float32(); r.IntN(3) == 0 {
			sums[i] = float32(r.IntN(2*255*8)) / 16
		}
	}
	roundSums(&dst[0], &near[0], &sums[0], low, high, n)
	for i := range n {
		whole := float32(math.Floor(float64(sums[i] + 0.5)))
		rest := sums[i] + 0.5 - whole
		isNear := rest < low || rest > high
		if float32(dst[i]) != whole || near[i/8]>>(i%8)&1 == 1 != isNear {
			t.Fatalf("%v of %d: %d, near %08b", sums[i], n, dst[i], near[i/8])
		}
	}
}

func checkExactSums(t *testing.T, r *rand.Rand, h, w int) {
	width := 3*w + 20
	src := guardedValues[float32](t, h*width)
	taps := make([]float32, w*h)
	for i := range src {
		src[i] = float32(r.IntN(256))
		taps[i%len(taps)] = r.Float32() / 100
	}
	rows := make([]int, h)
	for i := range rows {
		rows[i] = 4 * width * (h - 1 - i)
	}
	var columns [8]int
	for i := range columns {
		columns[i] = 4 * (20 + 2 - i*3) // the first reaches the last value of a row
	}
	var sums [8]float32
	exactSums(&sums, &src[0], &rows[0], &columns, &taps[0], w, h)
	for i, got := range sums {
		want := float32(0)
		for y := range h {
			for x := range w {
				want = order.Fused(src[(rows[y]+columns[i])/4+3*x], taps[y*w+x], want)
			}
		}
		if got != want {
			t.Fatalf("sum %d of a kernel of %d×%d: %v, want %v", i, w, h, got, want)
		}
	}
}
