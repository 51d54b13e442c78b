package jpeg

import "github.com/feedwater-io/feedwater/pipeline/internal/kernel"

// bandTable is the look-up for the AC coefficients of progressive files.
type bandTable struct {
	entries [1 << acBits]entry
	kind    kind // kindBand or kindRefine
	long    longCodes
}

func (t *bandTable) build(d definition, of kind) {
	if t.kind != of {
		t.kind, t.long.size = of, 0 // other entries for the same definition
	}
	t.long.build(d, t.entries[:], acBits, of)
}

// entry looks up one symbol at the top of acc.
func (t *bandTable) entry(acc uint64) entry {
	e := t.entries[acc>>(64-acBits)]
	if e == 0 {
		e = t.long.find(acc, acBits, t.kind)
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

// readRow reads the bands of neighbouring blocks of a row, which sent belongs to. Block i is out[i-left] where out has it.
func (c *coder) readRow(out []kernel.Block, left int, sent []uint64) {
	from := min(max(left, 0), len(sent))
	to := min(max(left+len(out), from), len(sent))
	c.readBands(nil, sent[:from])
	if from < to {
		c.readBands(out[from-left:to-left], sent[from:to])
	}
	c.readBands(nil, sent[to:])
}

// readBands reads the bands of blocks, until the data has run out. out is nil where only the place behind them matters. The assembly
// stops before a block that has what is rare: a code longer than the look-up, very many corrections, or damage.
func (c *coder) readBands(out []kernel.Block, sent []uint64) {
	for i := 0; i < len(sent); i++ {
		if c.vector {
			if i += c.readBandsVector(out[min(i, len(out)):], sent[i:]); i == len(sent) {
				return
			}
		}
		var b *kernel.Block
		if out != nil {
			b = &out[i]
		}
		if !c.readBand(b, &sent[i]) {
			return
		}
	}
}

// readBand reads the band of one block, and reports whether there was data. One that has ended before its band begins takes none, or corrections only.
func (c *coder) readBand(out *kernel.Block, sent *uint64) bool {
	refine := c.scan.band.high > 0
	if c.ended > 0 && (!refine || *sent&c.scan.band.mask() == 0) {
		c.ended--
		return true
	}
	if c.bits.consumed() > c.segment.bits {
		return false
	}
	if refine {
		c.refineBand(out, sent)
	} else {
		c.firstBand(out, sent)
	}
	return true
}

// firstBand reads the band of a block for the first time. A value that is cut off by the shift clears what was there, as in libjpeg; a run
// of zeros that leads past the band is followed.
func (c *coder) firstBand(out *kernel.Block, sent *uint64) {
	var aside kernel.Block
	if out == nil {
		out = &aside
	}
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
