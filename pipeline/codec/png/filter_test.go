package png

import (
	"bytes"
	"fmt"
	"hash/adler32"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// definedRow undoes a filter as the specification says it, byte by byte.
func definedRow(filter byte, raw, prev []byte, bpp int) []byte {
	row := make([]byte, len(raw))
	distance := func(a, b int) int { return max(a-b, b-a) }
	for i, v := range raw {
		var left, corner int
		up := int(prev[i])
		if i >= bpp {
			left, corner = int(row[i-bpp]), int(prev[i-bpp])
		}
		predicted := []int{0, left, up, (left + up) / 2, left}[filter]
		if p := left + up - corner; filter == 4 && distance(p, left) > min(distance(p, up), distance(p, corner)) {
			if predicted = up; distance(p, up) > distance(p, corner) {
				predicted = corner
			}
		}
		row[i] = v + byte(predicted)
	}
	return row
}

// Every level undoes every filter as it is defined, for pixels of each size and rows of each length, and touches no byte beyond the pad.
func TestUnfilter(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	fill := func(b []byte) {
		for i := range b {
			if b[i] = byte(r.Uint32()); r.IntN(3) == 0 {
				b[i] = byte(255 * r.IntN(2))
			}
		}
	}
	for bpp := 1; bpp <= 8; bpp++ {
		for _, pixels := range []int{0, 1, 2, 3, 7, 31, 32, 33, 100} {
			n := pixels * bpp
			raw, prev, dst := guardtest.Bytes(t, n+filterPad), guardtest.Bytes(t, n+filterPad), guardtest.Bytes(t, n+filterPad)
			for filter := byte(0); filter <= lastFilter; filter++ {
				fill(raw)
				fill(prev)
				want := definedRow(filter, raw[:n], prev[:n], bpp)
				for _, level := range kernel.Levels() {
					fill(dst)
					unfilterInto(filter, dst, raw[:n], prev, bpp, kernel.Vector(level))
					if !bytes.Equal(dst[:n], want) {
						t.Fatalf("%s: filter %d, %d pixels of %d bytes: differs", level, filter, pixels, bpp)
					}
				}
			}
		}
	}
}

// Every level sums as package adler32, whatever the lengths of the pieces.
func TestAdler(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, n := range []int{0, 1, 31, 32, 33, 63, 64, 5535, 5536, 5537, 5552, 100_003} {
		b := guardtest.Bytes(t, n)
		for i := range b {
			b[i] = byte(255 - r.IntN(2)*r.IntN(256))
		}
		for _, level := range kernel.Levels() {
			a, rest := newAdler(), b
			for len(rest) > 0 {
				k := 1 + r.IntN(len(rest))
				a.add(rest[:k], kernel.Vector(level))
				rest = rest[k:]
			}
			if want := adler32.Checksum(b); a.value() != want {
				t.Errorf("%s, %d bytes: %08x, want %08x", level, n, a.value(), want)
			}
		}
	}
}

func BenchmarkUnfilter(b *testing.B) {
	raw, prev, dst := make([]byte, 1500+filterPad), make([]byte, 1500+filterPad), make([]byte, 1500+filterPad)
	for _, level := range kernel.Levels() {
		for filter := byte(1); filter <= lastFilter; filter++ {
			b.Run(fmt.Sprintf("%s/%d", level, filter), func(b *testing.B) {
				b.SetBytes(1500)
				for b.Loop() {
					unfilterInto(filter, dst, raw[:1500], prev, 3, kernel.Vector(level))
				}
			})
		}
	}
}
