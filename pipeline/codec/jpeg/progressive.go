package jpeg

import (
	mathbits "math/bits"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// progressive reads one scan of a progressive file, of which there are four kinds.
func (m *multiscan) progressive(c *coder) {
	s := c.scan
	if s.band.first == 0 {
		rows := m.bottom
		if s.n == 1 {
			rows = m.rows(s.comps[0].index)
		}
		m.walk(c, rows, func(x, y, n int) { m.first(c, x, y, n) })
		return
	}
	index := s.comps[0].index
	g, across := &m.grids[index], m.frame.comps[index].blocksX
	m.walk(c, m.rows(index), func(x, y, n int) {
		sent := g.sent[y*across+x:][:n]
		left := g.area.Min.X - x
		if s.band.high == 0 {
			c.firstBlocks(g.row(y), left, sent)
		} else {
			c.refineBlocks(g.row(y), left, sent)
		}
	})
}

// rows is how many rows of blocks a scan of one component has, as far as they matter.
func (m *multiscan) rows(comp int) int {
	c := &m.frame.comps[comp]
	return min(m.bottom*c.v, c.blocksY)
}

// walk gives all MCUs that have data in the first rows of a scan to read: n of row y from column x on.
func (m *multiscan) walk(c *coder, rows int, read func(x, y, n int)) {
	height := 1 // of a row of the picture's MCUs
	if c.scan.n == 1 {
		height = m.frame.comps[c.scan.comps[0].index].v
	}
	for y := range rows {
		for x := 0; x < c.row; {
			most := c.row - x
			if !c.exhausted() {
				m.good = y / height
			} else if c.left == 0 { // libjpeg looks before it passes a restart marker, and then before the second MCU
				most = 1
			}
			n := c.take(most)
			if !c.empty {
				read(x, y, n)
			}
			x += n
		}
	}
}

// first reads the first coefficients of n MCUs, or one more bit of them.
func (m *multiscan) first(c *coder, x, y, n int) {
	b, data, end := c.bits, c.segment.data, c.segment.bits
	low, refine := c.scan.band.low, c.scan.band.high > 0
	for ; n > 0 && b.consumed() <= end; n-- {
		for i := range c.units {
			u := &c.units[i]
			out := m.grids[u.comp].at(x*u.w+u.x, y*u.h+u.y)
			if refine {
				b = b.refill(data)
				if out != nil {
					out[0] |= int16(b.acc>>63) << low
				}
				b = b.drop(1)
				continue
			}
			b = u.pred.first(data, b)
			if out != nil {
				out[0] = int16(u.pred.last << low)
			}
		}
		x++
	}
	c.bits = b
}

// bandTable is the look-up for the AC coefficients of progressive files.
type bandTable struct {
	entries [1 << acBits]entry
	long    longCodes
}

func (t *bandTable) build(d definition) { t.long.build(d, t.entries[:], acBits, kindBand) }

// entry looks up one symbol at the top of acc.
func (t *bandTable) entry(acc uint64) entry {
	e := t.entries[acc>>(64-acBits)]
	if e == 0 {
		e = t.long.find(acc, acBits, kindBand)
	}
	return e
}

// ends reports whether e ends the block, and how many more blocks end with it, whose band has nothing new.
func (e entry) ends(acc uint64) (more int, ok bool) {
	if e>>24 != endOfBlock {
		return 0, false
	}
	size := 63 - e>>16&63
	return 1<<size - 1 + int(acc<<(e>>8&63)>>1>>(e>>16&63)), true
}

// firstBlocks reads the bands of a row of neighbouring blocks for the first time. Block i is out[i-left] where out has it; sent belongs to the
// blocks.
func (c *coder) firstBlocks(out []kernel.Block, left int, sent []uint64) {
	var aside kernel.Block
	end := c.segment.bits
	for i := 0; i < len(sent); i++ {
		if c.ended > 0 {
			n := min(c.ended, len(sent)-i)
			c.ended -= n
			i += n - 1
			continue
		}
		if c.bits.consumed() > end {
			return
		}
		b := &aside
		if uint(i-left) < uint(len(out)) {
			b = &out[i-left]
		}
		c.firstBand(b, &sent[i])
	}
}

// firstBand reads the band of one block. A value that is cut off by the shift clears what was there, as in libjpeg; a run
// of zeros that leads past the band is followed.
func (c *coder) firstBand(out *kernel.Block, sent *uint64) {
	b, data, t := c.bits, c.segment.data, &c.band
	last, low := c.scan.band.last, c.scan.band.low
	mask := *sent
	for k := c.scan.band.first - 1; k < last; {
		b = b.refill(data)
		e := t.entry(b.acc)
		acc := b.acc
		b = b.drop(uint32(e & 255))
		if more, ok := e.ends(acc); ok {
			c.ended = more
			break
		}
		k += int(e >> 24)
		if e>>16&63 == 63 { // sixteen zeros
			continue
		}
		v := int16(value(acc, e) << low)
		at := min(k, 63)
		out[zigzag[at]] = v
		mask |= 1 << at
		if v == 0 {
			mask &^= 1 << at
		}
	}
	c.bits, *sent = b, mask
}

// refineBlocks reads one more bit of the bands of a row of neighbouring blocks. The arguments are those of firstBlocks.
func (c *coder) refineBlocks(out []kernel.Block, left int, sent []uint64) {
	end, all := c.segment.bits, c.scan.band.mask()
	for i := range sent {
		old := sent[i] & all
		if c.ended > 0 && old == 0 {
			c.ended--
			continue
		}
		if c.bits.consumed() > end {
			return
		}
		var b *kernel.Block
		if uint(i-left) < uint(len(out)) {
			b = &out[i-left]
		}
		if c.ended > 0 {
			c.ended--
			c.bits = correct(c.segment.data, c.bits, b, old, c.scan.band.low)
			continue
		}
		c.refineBand(b, &sent[i])
	}
}

// refineBand reads one more bit of the band of a block, which is nil where only the place behind it matters. Between the new coefficients, and
// behind the last, each one that is not zero takes a bit.
func (c *coder) refineBand(out *kernel.Block, sent *uint64) {
	b, data, t := c.bits, c.segment.data, &c.band
	last, low := c.scan.band.last, c.scan.band.low
	mask, rest := *sent, c.scan.band.mask() // rest: what of the band is to come
	for rest != 0 {
		b = b.refill(data)
		e := t.entry(b.acc)
		if more, ok := e.ends(b.acc); ok {
			b = b.drop(uint32(e & 255))
			c.ended = more
			b = correct(data, b, out, mask&rest, low)
			break
		}
		sign := int16(b.acc << (e >> 8 & 63) >> 63) // 1: the new coefficient is positive
		b = b.drop(uint32(e >> 8 & 255))
		free := rest &^ mask
		for run := e >> 24; run > 1; run-- {
			free &= free - 1
		}
		passed := rest & (free&-free - 1) // where the run leads, all if it leads past the band
		if e>>16&63 == 63 {
			b = correct(data, b, out, mask&passed, low)
			rest &^= passed | free&-free
			continue
		}
		b = correct(data, b.drop(1), out, mask&passed, low)
		at := min(mathbits.TrailingZeros64(free), last+1, 63) // libjpeg puts it behind the band if the run leads there
		mask |= 1 << at
		if out != nil {
			out[zigzag[at]] = (2*sign - 1) << low
		}
		rest &^= passed | free&-free
	}
	c.bits, *sent = b, mask
}

// correct reads a bit for each coefficient of places and makes it larger by 1<<low where the bit is set, unless damaged data has set that before.
func correct(data []byte, b bits, out *kernel.Block, places uint64, low int) bits {
	n := uint(mathbits.OnesCount64(places))
	if n > b.n {
		b = b.refill(data)
		if n > b.n {
			places, b = correctFirst(data, b, out, places, low)
			n = uint(mathbits.OnesCount64(places))
		}
	}
	acc := b.acc
	b = b.drop(uint32(n))
	if out == nil {
		return b
	}
	for ; places != 0; places &= places - 1 {
		p := &out[zigzag[mathbits.TrailingZeros64(places)&63]&63]
		v := *p
		set := int16(acc>>63) &^ (v >> low)
		*p = v + (v>>15|1)*(set<<low)
		acc <<= 1
	}
	return b
}

// correctFirst does the first 32 of many coefficients and returns the others.
func correctFirst(data []byte, b bits, out *kernel.Block, places uint64, low int) (uint64, bits) {
	rest := places
	for range 32 {
		rest &= rest - 1
	}
	b = correct(data, b, out, places&^rest, low)
	return rest, b.refill(data)
}
