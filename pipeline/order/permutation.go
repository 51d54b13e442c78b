package order

import (
	"fmt"
	"math"
	"math/bits"
)

// MaxSamples is the largest number of samples that an order can hold.
const MaxSamples = 1 << 32

const (
	tableSamples  = 1024 // up to here the order is a shuffled table
	feistelRounds = 12   // 8 are measurably not uniform for small n
)

// Permutation is the order of one epoch: which sample stands at which position. It is safe for concurrent use.
type Permutation struct {
	n       uint64
	table   []uint32 // position → index; nil: feistel, or the identity
	inverse []uint32
	net     feistel // no keys: the identity
	blocks  *blocks // nil: samples are permuted one by one
}

// NewPermutation returns the shuffled order of n samples in an epoch. It panics unless 1 ≤ n ≤ MaxSamples.
//
// With K = NewKey(seed, "order"): up to 1024 samples the order is that of the Fisher–Yates shuffle of 0 … n−1 that runs
// i from n−1 down to 1 and swaps i with Below(w, i+1), where w is the next word of Philox(K, (0, epoch, 0, 1)),
// Philox(K, (1, epoch, 0, 1)), …. Beyond, it is the Feistel network below, keyed by the first two words of Philox(K,
// (i, epoch, 0, 0)) for round i.
func NewPermutation(n, seed uint64, epoch uint32) *Permutation {
	check(n)
	p, k := &Permutation{n: n}, NewKey(seed, "order")
	if n <= tableSamples {
		p.shuffle(k, epoch)
		return p
	}
	keys := make([]uint64, feistelRounds)
	for i := range keys {
		x := philox([4]uint32{uint32(i), epoch, 0, 0}, k)
		keys[i] = uint64(x[0]) | uint64(x[1])<<32
	}
	p.net = newFeistel(n, keys)
	return p
}

// Identity returns the order of n samples without shuffling. It panics unless 1 ≤ n ≤ MaxSamples.
func Identity(n uint64) *Permutation {
	check(n)
	return &Permutation{n: n}
}

func check(n uint64) {
	if n < 1 || n > MaxSamples {
		panic(fmt.Sprintf("order: %d samples; must be 1 to %d", n, uint64(MaxSamples)))
	}
}

// At returns the sample at a position and its repeat: position mod n under the permutation, and position div n modulo
// 2³².
func (p *Permutation) At(position uint64) (index, repeat uint32) {
	at := position
	if at >= p.n {
		at, repeat = position%p.n, uint32(position/p.n)
	}
	switch {
	case p.table != nil:
		return p.table[at], repeat
	case p.net.keys != nil:
		return uint32(p.net.at(at)), repeat
	case p.blocks != nil:
		return p.blocks.at(at), repeat
	}
	return uint32(at), repeat
}

// Position returns where a sample stands among the first n positions; index must be below n.
func (p *Permutation) Position(index uint32) uint64 {
	switch {
	case p.table != nil:
		return uint64(p.inverse[index])
	case p.net.keys != nil:
		return p.net.inverse(uint64(index))
	case p.blocks != nil:
		return p.blocks.position(index)
	}
	return uint64(index)
}

func (p *Permutation) shuffle(k Key, epoch uint32) {
	p.table, p.inverse = make([]uint32, p.n), make([]uint32, p.n)
	for i := range p.table {
		p.table[i] = uint32(i)
	}
	var words [4]uint32
	for i, used := int(p.n)-1, 0; i > 0; i, used = i-1, used+1 {
		if used%4 == 0 {
			words = philox([4]uint32{uint32(used / 4), epoch, 0, 1}, k)
		}
		j := Below(words[used%4], uint32(i+1))
		p.table[i], p.table[j] = p.table[j], p.table[i]
	}
	for i, x := range p.table {
		p.inverse[x] = uint32(i)
	}
}

// feistel permutes [0, n). A number x < a·b is written as (l, r) = (x mod a, x div a), a = ⌈√n⌉, b = ⌈n/a⌉, both at
// least 2. Round i adds F(r, key i) to l modulo a when i is even, and F(l, key i) to r modulo b when it is odd. A
// result outside [0, n) goes through all rounds again (cycle walking); at most a−1 numbers, or 3, lie outside, so that
// is rare.
type feistel struct {
	n, a, b uint64
	keys    []uint64
}

func newFeistel(n uint64, keys []uint64) feistel {
	a := uint64(math.Sqrt(float64(n)))
	for a*a < n {
		a++
	}
	a = max(a, 2)
	return feistel{n: n, a: a, b: max((n+a-1)/a, 2), keys: keys}
}

func (f *feistel) at(x uint64) uint64 {
	for {
		l, r := x%f.a, x/f.a
		for i, k := range f.keys {
			if i%2 == 0 {
				l = addMod(l, roundValue(r, k, f.a), f.a)
			} else {
				r = addMod(r, roundValue(l, k, f.b), f.b)
			}
		}
		if x = r*f.a + l; x < f.n {
			return x
		}
	}
}

func (f *feistel) inverse(x uint64) uint64 {
	for {
		l, r := x%f.a, x/f.a
		for i := len(f.keys) - 1; i >= 0; i-- {
			if i%2 == 0 {
				l = addMod(l, f.a-roundValue(r, f.keys[i], f.a), f.a)
			} else {
				r = addMod(r, f.b-roundValue(l, f.keys[i], f.b), f.b)
			}
		}
		if x = r*f.a + l; x < f.n {
			return x
		}
	}
}

// roundValue is F: the splitmix64 finaliser (Steele, Lea, Flood 2014) of x XOR key, scaled to [0, n) by the upper half
// of the 128-bit product.
func roundValue(x, key, n uint64) uint64 {
	x ^= key
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	h, _ := bits.Mul64(x^x>>31, n)
	return h
}

// addMod returns x+y modulo n for x < n, y ≤ n.
func addMod(x, y, n uint64) uint64 {
	if x += y; x >= n {
		x -= n
	}
	return x
}
