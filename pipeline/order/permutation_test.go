package order

import (
	"math"
	"testing"
)

// A maker writes the n numbers of one random permutation, one per key.
type maker func(out []uint32, key uint64)

// chiSquare draws permutations of n numbers under many keys and returns how far two tables are from uniform, in
// standard deviations: which number stands where, and which number follows which. Over all permutations the statistics'
// means are n(n−1) and (n−1)²; the position table, whose rows and columns have fixed sums, is brought to (n−1)² too.
// Wilson and Hilferty's cube root makes the small tables normal enough.
func chiSquare(n, keys int, write maker) (position, successor float64) {
	at, next := make([]uint32, n*n), make([]uint32, n*n)
	out := make([]uint32, n)
	for k := range keys {
		write(out, uint64(k))
		for i, x := range out {
			at[i*n+int(x)]++
			if i > 0 {
				next[int(out[i-1])*n+int(x)]++
			}
		}
	}
	freedom, expected := float64((n-1)*(n-1)), float64(keys)/float64(n)
	sum := func(table []uint32, cells int) (s float64) {
		for _, c := range table {
			s += float64(c) * float64(c)
		}
		return s/expected - 2*float64(keys)*float64(cells)/float64(n) + expected*float64(cells)
	}
	// Σ(O−E)²/E = ΣO²/E − 2ΣO + cells·E, and ΣO is keys·n, keys·(n−1).
	position = deviation(sum(at, n*n)*float64(n-1)/float64(n), freedom)
	successor = deviation(sum(next, n*(n-1)), freedom)
	return position, successor
}

func deviation(x, freedom float64) float64 {
	v := 2 / (9 * freedom)
	return (math.Cbrt(x/freedom) - 1 + v) / math.Sqrt(v)
}

func feistelMaker(n, rounds int) maker {
	keys := make([]uint64, rounds)
	return func(out []uint32, key uint64) {
		for i := range keys {
			x := philox([4]uint32{uint32(i), 0, 0, 0}, Key{uint32(key), uint32(n)})
			keys[i] = uint64(x[0]) | uint64(x[1])<<32
		}
		f := newFeistel(uint64(n), keys)
		for i := range out {
			out[i] = uint32(f.at(uint64(i)))
		}
	}
}

// worst is the largest deviation over both tables and all sizes; the size comes with it.
func worst(sizes []int, keys func(n int) int, perm func(n int) maker) (z float64, at int) {
	for _, n := range sizes {
		p, s := chiSquare(n, keys(n), perm(n))
		if d := max(math.Abs(p), math.Abs(s)); d > z {
			z, at = d, n
		}
	}
	return z, at
}

func sizes(from, to, step int) (s []int) {
	for n := from; n <= to; n += step {
		s = append(s, n)
	}
	return s
}

// limit holds for some 500 statistics: 4.5 is passed by chance once in 150,000.
const limit = 4.5

func TestOrderIsUniform(t *testing.T) {
	order := func(n int) maker {
		return func(out []uint32, key uint64) {
			p := NewPermutation(uint64(n), 17, uint32(key))
			for i := range out {
				out[i], _ = p.At(uint64(i))
			}
		}
	}
	keys := func(n int) int { return 12 + 10000/n }
	all := append(sizes(2, 200, 1), sizes(205, 1000, 15)...)
	if z, n := worst(all, keys, order); z > limit {
		t.Errorf("%d samples: %.1f standard deviations from uniform", n, z)
	}
}

// The network serves more than tableSamples samples; small sizes are where its rounds can be told from chance. Below 7
// they always can: each round is an even permutation of a tiny domain.
func TestNetworkIsUniformAndEightRoundsAreNot(t *testing.T) {
	small, keys := sizes(7, 24, 1), func(n int) int { return 90000 / n }
	rounds := func(r int) (float64, int) {
		return worst(small, keys, func(n int) maker { return feistelMaker(n, r) })
	}
	if z, n := rounds(feistelRounds); z > limit {
		t.Errorf("%d rounds, %d samples: %.1f standard deviations from uniform", feistelRounds, n, z)
	}
	if z, n := rounds(8); z < 6 {
		t.Errorf("8 rounds pass with %.1f at %d samples: this test cannot tell", z, n)
	}
}

// Above tableSamples: which 32nd of the samples stands in which 32nd of the positions, and follows a sample of which
// 32nd.
func TestLargeOrderIsUniform(t *testing.T) {
	const bins, keys = 32, 20
	for _, n := range []uint64{1025, 1332, 4099, 65537, 1<<20 + 7, MaxSamples} {
		var at, next [bins * bins]float64
		count := min(n-1, 20000)
		for key := range uint64(keys) {
			p := NewPermutation(n, key, 3)
			for i := range count {
				x := i * (n - 1) / count
				a, _ := p.At(x)
				b, _ := p.At(x + 1)
				at[x*bins/n*bins+uint64(a)*bins/n]++
				next[uint64(a)*bins/n*bins+uint64(b)*bins/n]++
			}
		}
		for name, table := range map[string]*[bins * bins]float64{"position": &at, "successor": &next} {
			e, x := float64(count*keys)/(bins*bins), 0.0
			for _, c := range table {
				x += (c - e) * (c - e) / e
			}
			// One-sided: a permutation is more even than independent draws. (bins do not divide n: 1 part in 33 at n =
			// 1025.)
			if z := deviation(x, bins*bins-1); z > limit {
				t.Errorf("%d samples, %s: %.1f standard deviations from uniform", n, name, z)
			}
		}
	}
}

func TestEveryOrderIsABijection(t *testing.T) {
	for _, n := range append(sizes(1, 40, 1), 255, 256, 257, 1023, 1024, 1025, 1056, 1057, 4096, 65535, 65536, 65537, 1<<20+7) {
		for name, p := range map[string]*Permutation{
			"shuffled": NewPermutation(uint64(n), 5, 9), "identity": Identity(uint64(n)),
		} {
			seen := make([]bool, n)
			for i := range seen {
				x, repeat := p.At(uint64(i))
				if int(x) >= n || seen[x] || repeat != 0 {
					t.Fatalf("%s, %d samples: position %d: sample %d, repeat %d", name, n, i, x, repeat)
				}
				if seen[x] = true; p.Position(x) != uint64(i) {
					t.Fatalf("%s, %d samples: sample %d at %d: Position says %d", name, n, x, i, p.Position(x))
				}
			}
		}
	}
	p := NewPermutation(MaxSamples, 5, 9)
	for x := uint64(0); x < MaxSamples; x += 104729 * 13 {
		if y, _ := p.At(x); p.Position(y) != x {
			t.Fatalf("2³² samples: sample %d at %d: Position says %d", y, x, p.Position(y))
		}
	}
}

func TestNetworkIsABijectionWhereTheTableServes(t *testing.T) {
	for n := 2; n <= 300; n++ {
		out, seen := make([]uint32, n), make([]bool, n)
		feistelMaker(n, feistelRounds)(out, 1)
		for _, x := range out {
			if int(x) >= n || seen[x] {
				t.Fatalf("%d samples: %d twice or outside", n, x)
			}
			seen[x] = true
		}
	}
}

func TestPositionsBeyondTheSamplesRepeatThem(t *testing.T) {
	for _, n := range []uint64{1, 7, 1000, 5000} {
		p := NewPermutation(n, 1, 1)
		for _, position := range []uint64{0, n - 1, n, 2*n + n/2, 9*n - 1} {
			first, _ := p.At(position % n)
			if x, repeat := p.At(position); x != first || repeat != uint32(position/n) {
				t.Errorf("%d samples, position %d: sample %d repeat %d", n, position, x, repeat)
			}
		}
	}
	if _, repeat := Identity(1).At(1<<32 + 3); repeat != 3 {
		t.Errorf("repeat %d does not wrap", repeat)
	}
}

// Orders of neighbouring epochs and seeds agree in one position on average, as independent ones do.
func TestOrdersAreUnrelated(t *testing.T) {
	for _, n := range []uint64{1000, 5000} {
		same, pairs := 0, 0
		for e := range uint32(40) {
			a := NewPermutation(n, 7, e)
			for _, b := range []*Permutation{NewPermutation(n, 7, e+1), NewPermutation(n, 8, e)} {
				pairs++
				for i := range n {
					x, _ := a.At(i)
					y, _ := b.At(i)
					if x == y {
						same++
					}
				}
			}
		}
		// Poisson with mean and variance = pairs.
		if z := (float64(same) - float64(pairs)) / math.Sqrt(float64(pairs)); math.Abs(z) > 4 {
			t.Errorf("%d samples: %d agreements in %d pairs of orders", n, same, pairs)
		}
	}
}

func TestImpossibleSizesPanic(t *testing.T) {
	for _, n := range []uint64{0, MaxSamples + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d samples: no panic", n)
				}
			}()
			NewPermutation(n, 0, 0)
		}()
	}
}

func BenchmarkAt(b *testing.B) {
	p := NewPermutation(1281167, 1, 1)
	for i := range b.N {
		p.At(uint64(i) % 1281167)
	}
}

func BenchmarkShuffle1024(b *testing.B) {
	for i := range b.N {
		NewPermutation(1024, 1, uint32(i))
	}
}
