package jpeg

import (
	"encoding/binary"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// bits is a place in a segment: acc holds the next bits at its top, n of them counted, the rest starts at byte at.
type bits struct {
	acc uint64
	n   uint
	at  int
}

// refill brings n to 56 at least. It reads 8 bytes.
func (b bits) refill(data []byte) bits {
	b.acc |= binary.BigEndian.Uint64(data[b.at:]) >> (b.n & 63)
	b.at += int((63 - b.n) >> 3)
	b.n |= 56
	return b
}

// drop passes over l bits, at most n and 63.
func (b bits) drop(l uint32) bits {
	b.acc <<= l & 63
	b.n -= uint(l)
	return b
}

// consumed is how many bits of the segment have been used.
func (b bits) consumed() int { return b.at*8 - int(b.n) }

// A block takes at most 32 bits for its first coefficient and 31 for each other one, and a refill reads 8 bytes at once.
const (
	blockBytes  = 256
	refillBytes = 8
)

// place is where in a block the coefficient of a position goes. Positions start at 1 and run past the end of the block:
// there it is 0, the place that is written last.
var place = func() (p [256]uint8) {
	for k, at := range zigzag {
		p[k+1] = at
	}
	return p
}()

// predictor is what decodes the blocks of one component: its tables and its last first coefficient.
type predictor struct {
	dc   *dcTable
	ac   *acTable
	last int32
}

// block decodes a block into out, which is zero. data has blockBytes+refillBytes bytes behind b.
func (p *predictor) block(data []byte, b bits, out *kernel.Block) bits {
	b = p.first(data, b)
	b = p.ac.rest(data, b, out)
	out[0] = int16(p.last)
	return b
}

// skip passes over a block.
func (p *predictor) skip(data []byte, b bits) bits {
	return p.ac.skip(data, p.first(data, b))
}

// first decodes the difference of the first coefficient.
func (p *predictor) first(data []byte, b bits) bits {
	b = b.refill(data)
	e := p.dc.entries[b.acc>>(64-dcBits)]
	if e == 0 {
		e = p.dc.long.find(b.acc, dcBits, kindDC)
	}
	p.last += value(b.acc, e)
	return b.drop(uint32(e & 255))
}

// rest decodes all coefficients but the first.
func (t *acTable) rest(data []byte, b bits, out *kernel.Block) bits {
	k := uint32(1)
	for {
		b = b.refill(data)
		for range 2 { // two look-ups take 44 of 56 bits
			e := t.pairs[t.index(b.acc)]
			k2 := k + e.first>>16&255
			k1 := k2 + uint32(int8(e.second))
			if e.first == 0 || k1 >= 64 && k1 != k2 { // no pair, or the second symbol is beyond the block
				b = b.refill(data)
				e := t.entry(b.acc)
				v := int16(value(b.acc, e))
				k += uint32(e >> 24)
				out[place[uint8(k)]&63] = v
				b = b.drop(uint32(e & 255))
				if k >= 64 {
					overrun(out, k, v)
					return b
				}
				break
			}
			k = k2
			l := e.first >> 24
			v := int16(b.acc>>((64-l)&63)&(1<<(e.first>>8&63)-1)) + int16(e.second>>16)
			out[place[uint8(k1)]&63] = int16(int8(e.second >> 8))
			out[place[uint8(k)]&63] = v
			b = b.drop(l)
			if k >= 64 {
				overrun(out, k, v)
				return b
			}
		}
	}
}

// overrun stores a block's last value v in the last place if its position k is past the end. libjpeg does the same with such
// runs, which damaged data has.
func overrun(out *kernel.Block, k uint32, v int16) {
	if k > 64 && k <= endOfBlock {
		out[63] = v
	}
}

// skip passes over all coefficients but the first. The table has to be ready.
func (t *acTable) skip(data []byte, b bits) bits {
	for k := uint32(1); k < 64; {
		b = b.refill(data)
		e := t.triples[t.index(b.acc)]
		if next := k + uint32(e>>16); e != 0 && (next <= 64 || next-endOfBlock < 64) {
			k, b = next, b.drop(uint32(e>>8&255))
		} else { // the block can end before the last symbol does
			e := t.entry(b.acc)
			k, b = k+uint32(e>>24), b.drop(uint32(e&255))
		}
	}
	return b
}

// entry looks up one symbol at the top of acc.
func (t *acTable) entry(acc uint64) entry {
	e := t.entries[t.index(acc)]
	if e == 0 {
		e = t.long.find(acc, t.width, kindAC)
	}
	return e
}

// index is where the tables have what the bits at the top of acc start with.
func (t *acTable) index(acc uint64) uint64 { return acc >> (64 - t.width) & (1<<acBits - 1) }
