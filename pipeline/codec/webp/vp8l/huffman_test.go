package vp8l

import (
	"math/rand/v2"
	"testing"
)

// A code is taken that libwebp takes: of one symbol whatever its length, or complete.
func TestWhichCodesThereAre(t *testing.T) {
	for name, c := range map[string]struct {
		lengths []uint8
		want    bool
	}{
		"no symbol":              {[]uint8{0, 0, 0}, false},
		"one symbol":             {[]uint8{0, 1, 0}, true},
		"one symbol of 15 bits":  {[]uint8{0, 0, 15}, true},
		"two symbols":            {[]uint8{1, 0, 1}, true},
		"two, and codes unused":  {[]uint8{1, 2}, false},
		"three, too many":        {[]uint8{1, 1, 1}, false},
		"complete":               {[]uint8{1, 2, 3, 3}, true},
		"complete, of 9 bits":    {[]uint8{1, 2, 3, 4, 5, 6, 7, 8, 9, 9}, true},
		"unused, of 9 bits":      {[]uint8{1, 2, 3, 4, 5, 6, 7, 8, 9}, false},
		"too many, of 9 bits":    {[]uint8{1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9}, false},
		"complete, with 15 bits": {[]uint8{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15}, true},
	} {
		var kept, checked tables
		if got := kept.add(rootBits, c.lengths, true); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		if got := checked.add(rootBits, c.lengths, false); got != c.want || len(checked.entries) != 0 {
			t.Errorf("%s, only checked: %t, %d entries", name, got, len(checked.entries))
		}
	}
}

// drawCode draws the lengths of a complete code, by splitting codes.
func drawCode(r *rand.Rand, n int) []uint8 {
	lengths := []uint8{0}
	for len(lengths) < n {
		if i := r.IntN(len(lengths)); lengths[i] < maxBits {
			lengths[i]++
			lengths = append(lengths, lengths[i])
		}
	}
	r.Shuffle(n, func(i, j int) { lengths[i], lengths[j] = lengths[j], lengths[i] })
	return lengths
}

// Each symbol's code, the canonical one, gives that symbol, and takes its bits.
func TestSymbols(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for k := range 200 {
		lengths := drawCode(r, 2+r.IntN(280))
		var made tables
		if !made.add(rootBits, lengths, true) {
			t.Fatalf("code %d is not taken: %v", k, lengths)
		}
		code := 0
		for n := uint8(1); n <= maxBits; n++ {
			code <<= 1
			for symbol, length := range lengths {
				if length != n {
					continue
				}
				var bits uint64
				for i := range n {
					bits |= uint64(code>>(n-1-i)&1) << i
				}
				b := bitReader{acc: bits | r.Uint64()<<n, bits: 60}
				if got := b.symbol(made.entries); got != symbol || b.bits != 60-int(n) {
					t.Fatalf("code %d: %0*b is %d of %d bits, want %d", k, n, code, got, 60-b.bits, symbol)
				}
				code++
			}
		}
	}
}

// Bits behind the end are zeros, and are noticed, but for those of the first word.
func TestOver(t *testing.T) {
	for _, c := range []struct{ bytes, read, want int }{{0, 64, 0}, {1, 64, 0}, {1, 65, 1}, {8, 64, 0}, {8, 65, 1}, {20, 160, 0}, {20, 161, 1}} {
		var b bitReader
		b.open(make([]byte, c.bytes))
		for range c.read {
			b.read(1)
		}
		if b.over() != (c.want == 1) {
			t.Errorf("%+v: %t", c, b.over())
		}
	}
}
