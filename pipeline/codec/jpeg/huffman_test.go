package jpeg

import (
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

var widths = [2]int{acBits, fewBits}

// slow is acTable.rest by one symbol after the other.
func (t *acTable) slow(data []byte, b bits, out *kernel.Block) bits {
	for k := uint32(1); k < 64; {
		b = b.refill(data)
		e := t.entry(b.acc)
		k += uint32(e >> 24)
		if v := int16(value(b.acc, e)); k < endOfBlock {
			out[zigzag[min(k, 64)-1]] = v
		}
		b = b.drop(uint32(e & 255))
	}
	return b
}

// Blocks are read, and passed over, as they are where every symbol is looked up alone.
func TestPairsAndTriples(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 8))
		var table acTable
		table.build(randomDefinition(r, 256), widths[seed%2], false)
		table.ready(false)
		var l lane
		l.fill(r)
		data := l.segment.data
		for b := l.bits; b.consumed() < l.segment.bits; {
			var got, want kernel.Block
			table.long.missed = false
			end := table.slow(data, b, &want)
			missed := table.long.missed
			table.long.missed = false
			read := table.rest(data, b, &got)
			got[0], want[0] = 0, 0 // nothing is said of it
			if got != want || read.consumed() != end.consumed() || table.long.missed != missed {
				t.Fatalf("seed %d: read to bit %d, not %d, %v, not %v", seed, read.consumed(), end.consumed(), got, want)
			}
			table.long.missed = false
			if read = table.skip(data, b); read.consumed() != end.consumed() || table.long.missed != missed {
				t.Fatalf("seed %d: skipped to bit %d, not %d", seed, read.consumed(), end.consumed())
			}
			b = end
		}
	}
}

// What two pairs, or the first coefficient's difference and a triple, take of a refill leaves the bits to look up what comes next.
func TestRefillsLast(t *testing.T) {
	const refilled, longestValue = 56, 15
	if 2*pairLength+acBits > refilled {
		t.Error("pairs take too much")
	}
	if acBits+longestValue+acBits > refilled || 16+16+acBits > refilled {
		t.Error("triples take too much")
	}
}
