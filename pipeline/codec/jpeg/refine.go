package jpeg

import (
	"encoding/binary"
	mathbits "math/bits"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// refineBand reads one more bit of the band of a block, which is nil where only the place behind it matters. Between the new coefficients, and
// behind the last, each one that is not zero takes a bit, its correction. These are gathered, since how many there are depends on what is new alone.
func (c *coder) refineBand(out *kernel.Block, sent *uint64) {
	b, data, t := c.bits, c.segment.data, &c.band
	first, last, low := c.scan.band.first, c.scan.band.last, c.scan.band.low
	mask, old := *sent, *sent&c.scan.band.mask()
	var free places
	free.set(^old &^ (1<<first - 1))
	var bit, corrections uint64
	at := first - 1
	for next := -1; c.ended == 0 && at < last; {
		b = b.refill(data)
		e := t.entry(b.acc)
		if more, ok := e.ends(b.acc); ok {
			b = b.drop(uint32(e & 255))
			c.ended = more + 1
			break
		}
		v := int16(b.acc<<(e>>8&63)>>63<<1-1) << low
		b = b.drop(uint32(e & 255))
		move := int(e >> 24)
		next += move
		passed := uint(int(free[next]) - at - move)
		bit, b = b.take(data, passed)
		corrections = corrections<<passed | bit
		at = int(free[next])
		if e>>16&63 == 63 { // sixteen zeros
			continue
		}
		place := min(at, last+1, 63) // libjpeg puts it behind the band if the run leads there; no correction changes it
		mask |= 1 << place
		if out != nil {
			out[zigzag[place]] = v
		}
	}
	if c.ended > 0 {
		c.ended--
	}
	passed := uint(mathbits.OnesCount64(old >> at >> 1))
	bit, b = b.take(data, passed)
	if out != nil {
		correct(out, old, corrections<<passed|bit, low)
	}
	c.bits, *sent = b, mask
}

// correct makes those coefficients of places larger by 1<<low whose corrections are set, unless damaged data has set that bit before. The correction of the
// last place is the lowest bit.
func correct(out *kernel.Block, places, corrections uint64, low int) {
	corrections <<= -mathbits.OnesCount64(places) & 63
	for ; corrections != 0; corrections <<= 1 {
		p := &out[zigzag[mathbits.TrailingZeros64(places)&63]]
		v := *p
		set := int16(corrections>>63) &^ (v >> low)
		*p = v + (v>>15|1)*(set<<low)
		places &= places - 1
	}
}

// places lists where the set bits of a mask are, and behind these all numbers from 64 to 79.
type places [64 + 16]uint8

// bytePlaces lists where the set bits of a byte are.
var bytePlaces = func() (all [256][8]uint8) {
	for m := range all {
		n := 0
		for k := range uint8(8) {
			if m>>k&1 == 1 {
				all[m][n] = k
				n++
			}
		}
	}
	return all
}()

func (p *places) set(mask uint64) {
	const each = 0x0101010101010101
	n, from := 0, uint64(0)
	for ; from < 64*each; from += 8 * each {
		binary.LittleEndian.PutUint64(p[n:], binary.LittleEndian.Uint64(bytePlaces[mask&255][:])+from)
		n += mathbits.OnesCount8(uint8(mask))
		mask >>= 8
	}
	binary.LittleEndian.PutUint64(p[n:], 0x0706050403020100+from)
	binary.LittleEndian.PutUint64(p[n+8:], 0x0706050403020100+from+8*each)
}

// take reads n bits, at most 63.
func (b bits) take(data []byte, n uint) (uint64, bits) {
	if n > b.n {
		return b.takeMany(data, n)
	}
	return b.acc >> 1 >> (^n & 63), b.drop(uint32(n))
}

// takeMany is take where the bits may be more than a refill brings.
//
//go:noinline
func (b bits) takeMany(data []byte, n uint) (uint64, bits) {
	b = b.refill(data)
	if n <= b.n {
		return b.take(data, n)
	}
	high := b.acc >> 32
	low, b := b.drop(32).refill(data).take(data, n-32)
	return high<<(n-32) | low, b
}
