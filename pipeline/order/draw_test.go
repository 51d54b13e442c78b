package order

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// The vectors that the authors of Philox publish (Random123, kat_vectors).
func TestPhiloxGivesThePublishedVectors(t *testing.T) {
	const f = 0xffffffff
	for _, v := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{f, f, f, f}, [2]uint32{f, f}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := philox(v.counter, v.key); got != v.want {
			t.Errorf("philox(%x, %x) = %x, want %x", v.counter, v.key, got, v.want)
		}
	}
}

func TestEveryPartOfADrawsNameMatters(t *testing.T) {
	s := Sample{Epoch: 1, Index: 2, Repeat: 3}
	base := NewKey(17, "RandomResizedCrop/0").Block(s, 0)
	for name, other := range map[string][4]uint32{
		"seed":       NewKey(18, "RandomResizedCrop/0").Block(s, 0),
		"occurrence": NewKey(17, "RandomResizedCrop/1").Block(s, 0),
		"class":      NewKey(17, "RandomHorizontalFlip/0").Block(s, 0),
		"block":      NewKey(17, "RandomResizedCrop/0").Block(s, 1),
		"epoch":      NewKey(17, "RandomResizedCrop/0").Block(Sample{2, 2, 3}, 0),
		"index":      NewKey(17, "RandomResizedCrop/0").Block(Sample{1, 3, 3}, 0),
		"repeat":     NewKey(17, "RandomResizedCrop/0").Block(Sample{1, 2, 4}, 0),
	} {
		if other == base {
			t.Errorf("another %s gives the same draw", name)
		}
	}
}

func TestUnitStaysBelowOne(t *testing.T) {
	if u := Unit(math.MaxUint32); u != 1-1.0/(1<<24) {
		t.Errorf("largest is %v", u)
	}
	if Unit(255) != 0 || Unit(256) != 1.0/(1<<24) {
		t.Error("the lower 8 bits count")
	}
}

func TestUniformRoundsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		x := r.Uint32()
		a := float32(r.NormFloat64())
		b := a + float32(math.Abs(r.NormFloat64()))*float32(math.Exp2(float64(r.IntN(20)-12)))
		exact := new(big.Float).SetPrec(300).Mul(big.NewFloat(float64(Unit(x))), big.NewFloat(float64(b-a)))
		want, _ := exact.Add(exact, big.NewFloat(float64(a))).Float32()
		if got := Uniform(x, a, b); got != want {
			t.Fatalf("Uniform(%#x, %v, %v) = %v, want %v", x, a, b, got, want)
		}
	}
}

func TestBelowCoversItsRangeEvenly(t *testing.T) {
	k := NewKey(3, "test/0")
	for _, n := range []uint32{1, 2, 7, 500} {
		counts, draws := make([]float64, n), 4000*int(n)
		for i := range draws {
			counts[Below(k.Block(Sample{Index: uint32(i)}, 0)[2], n)]++
		}
		x := 0.0
		for _, c := range counts {
			x += (c - 4000) * (c - 4000) / 4000
		}
		if n > 1 && deviation(x, float64(n-1)) > 4 {
			t.Errorf("below %d: chi-square %.1f", n, x)
		}
	}
	if Below(math.MaxUint32, 65500) != 65499 {
		t.Error("the last value is out of reach")
	}
}

// Neighbouring samples, epochs, repeats, blocks and words are uncorrelated, and each is uniform.
func TestDrawsAreIndependent(t *testing.T) {
	const n = 40_000
	k := NewKey(11, "RandomHorizontalFlip/0")
	at := func(s Sample, block uint32, word int) float64 { return float64(Unit(k.Block(s, block)[word])) - 0.5 }
	for name, pair := range map[string]func(i uint32) (a, b float64){
		"index":  func(i uint32) (float64, float64) { return at(Sample{Index: i}, 0, 0), at(Sample{Index: i + 1}, 0, 0) },
		"epoch":  func(i uint32) (float64, float64) { return at(Sample{Epoch: i}, 0, 0), at(Sample{Epoch: i + 1}, 0, 0) },
		"repeat": func(i uint32) (float64, float64) { return at(Sample{Repeat: i}, 0, 0), at(Sample{Repeat: i + 1}, 0, 0) },
		"block":  func(i uint32) (float64, float64) { return at(Sample{}, i, 0), at(Sample{}, i+1, 0) },
		"word":   func(i uint32) (float64, float64) { return at(Sample{Index: i}, 0, 1), at(Sample{Index: i}, 0, 2) },
		"swap":   func(i uint32) (float64, float64) { return at(Sample{Index: i}, 0, 0), at(Sample{Epoch: i}, 0, 0) },
	} {
		mean, square, product := 0.0, 0.0, 0.0
		for i := range uint32(n) {
			a, b := pair(i + 1)
			mean, square, product = mean+a, square+a*a, product+a*b
		}
		// A unit uniform's variance is 1/12, its square's 1/180, a product's 1/144.
		for what, z := range map[string]float64{
			"mean":        mean * math.Sqrt(12.0/n),
			"variance":    (square - n/12.0) * math.Sqrt(180.0/n),
			"correlation": product * math.Sqrt(144.0/n),
		} {
			if math.Abs(z) > 4 {
				t.Errorf("%s: %s is %.1f standard deviations off", name, what, z)
			}
		}
	}
}

func BenchmarkBlock(b *testing.B) {
	k := NewKey(1, "x/0")
	for i := range b.N {
		k.Block(Sample{Index: uint32(i)}, 0)
	}
}
