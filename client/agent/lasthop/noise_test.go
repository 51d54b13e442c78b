package lasthop

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// The largest distance of the numbers' distribution from the normal one is as it is by chance.
func TestNormalsAreNormal(t *testing.T) {
	const n = 100_000
	k := order.NewKey(3, "noise")
	for i := range 4 {
		numbers := make([]float64, n)
		for b := range numbers {
			numbers[b] = float64(drawNormals(k.Block(order.Sample{}, uint32(b)))[i])
		}
		slices.Sort(numbers)
		distance := 0.0
		for j, z := range numbers {
			share := math.Erfc(-z/math.Sqrt2) / 2
			distance = max(distance, math.Abs(share-float64(j)/n), math.Abs(share-float64(j+1)/n))
		}
		if distance*math.Sqrt(n) > 1.95 { // p = 0.001
			t.Errorf("number %d: distance %v", i, distance)
		}
	}
}

func TestTurnIsPrecise(t *testing.T) {
	for x := uint64(0); x < 1<<32; x += 999_983 {
		s, c := sinCosOf(uint32(x))
		a := float64(x) * (math.Pi / (1 << 31))
		if math.Abs(s-math.Sin(a)) > 1e-13 || math.Abs(c-math.Cos(a)) > 1e-13 {
			t.Fatalf("turn(%d) = %v, %v", x, s, c)
		}
	}
}

func TestHalfRoundsToNearest(t *testing.T) {
	for x, want := range map[float32]uint16{
		0: 0, 1: 0x3c00, -1: 0xbc00, 0.5: 0x3800, 5.75: 0x45c0, 0x1p-14: 0x400, 0x1p-24: 1, 0x1p-25: 0, 0x1.8p-24: 2,
		1 + 0x1p-11: 0x3c00, 1 + 0x1.8p-10: 0x3c02, 0x1.ff8p-15: 0x3ff, 0x1.ffcp-15: 0x400, 0x1.ffep-15: 0x400, 1.9998: 0x4000, -0x1p-14: 0x8400,
	} {
		if got := toFloat16(x); got != want {
			t.Errorf("half(%v) = %#x, want %#x", x, got, want)
		}
	}
}

// Both layouts hold the same numbers, inside the rectangle alone.
func TestNoiseFillsTheRectangle(t *testing.T) {
	const h, w = 7, 9
	hop := Hop{DType: "float32"}
	pixels := [2][]byte{make([]byte, 12*h*w), make([]byte, 12*h*w)}
	for i, planar := range []bool{false, true} {
		img := canvas{pixels[i], h, w, 4, planar, hop.newElementWriter()}
		if !img.eraseBox(box(2, 3, 4, 5, 77, 78), make([]byte, 12)) {
			t.Fatal("refused")
		}
	}
	seen := map[uint32]bool{}
	for c := range 3 {
		for y := range h {
			for x := range w {
				a := binary.NativeEndian.Uint32(pixels[0][4*((y*w+x)*3+c):])
				b := binary.NativeEndian.Uint32(pixels[1][4*((c*h+y)*w+x):])
				inside := y >= 2 && y < 6 && x >= 3 && x < 8
				if a != b || (a != 0) != inside {
					t.Fatalf("channel %d at %d, %d: %#x and %#x", c, x, y, a, b)
				}
				seen[a] = true
			}
		}
	}
	if len(seen) != 3*4*5+1 {
		t.Errorf("%d different numbers", len(seen))
	}
}
