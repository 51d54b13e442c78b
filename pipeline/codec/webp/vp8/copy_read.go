package vp8

import (
	"encoding/binary"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/prefix"
)

// copyReader reads a copy.
type copyReader struct {
	copyWindow
	data  []byte // of coefficients
	modes []byte
	table [1 << copiedCodeBits]copyEntry
}

// copyWindow is what a copyReader has of its data.
type copyWindow struct {
	bits  uint64 // the next ones of the data, from the lowest on, at least valid
	valid int
	at    int // of the byte behind them, beyond the end of the data where zeros were made up
}

// copyEntry says what to do where the next bits are a symbol's code: from the lowest byte on, how many bits the code has with what follows, how many it
// has, how many follow; from bit 32 on, in 16 bits, what is added to these, for the coefficient; from bit 48 on which coefficient from here that is.
type copyEntry uint64

// entryOf makes the entry of a symbol with a code of n bits.
func entryOf(symbol uint16, n int) copyEntry {
	run, size, base := uint64(symbol>>5), int(symbol>>1&15), int16(0)
	switch {
	case symbol == symbolRest:
		return copyEntry(coefficientsEnd<<48 | n<<8 | n)
	case size == 0:
		return copyEntry(32<<48 | n<<8 | n)
	case symbol&1 == 0:
		base = 1 << (size - 1)
	default:
		base = 1 - 1<<size
	}
	return copyEntry((run+1)<<48 | uint64(uint16(base))<<32 | uint64((size-1)<<16|n<<8|n+size-1))
}

// open begins with a copy, and reports whether its code makes sense.
func (c *copyReader) open(copied []byte) bool {
	if len(copied) < copySymbols/2 {
		return false
	}
	var lengths [copySymbols]uint8
	for i, v := range copied[:copySymbols/2] {
		lengths[2*i], lengths[2*i+1] = v&15, v>>4
	}
	counts := prefix.Count(lengths[:])
	if counts.Unused() != 0 || slices.Max(lengths[:]) > copiedCodeBits {
		return false
	}
	eachCode(&counts, &lengths, func(symbol uint16, code uint32, n int) {
		e := entryOf(symbol, n)
		for i := code; i < 1<<copiedCodeBits; i += 1 << n {
			c.table[i] = e
		}
	})
	rest := copied[copySymbols/2:]
	n, k := binary.Uvarint(rest)
	if k <= 0 || n > uint64(len(rest)-k) {
		return false
	}
	rest = rest[k:]
	c.modes, c.data, c.copyWindow = rest[:n], rest[n:], copyWindow{}
	return true
}

// release lets go of the copy.
func (c *copyReader) release() { c.data, c.modes = nil, nil }

// over reports whether more bits were read than the data has.
func (c *copyReader) over() bool { return 8*c.at-c.valid > 8*len(c.data) }

// readModes reads the modes of the next macroblock, and reports whether there are any that make sense.
func (c *copyReader) readModes(m *modes) bool {
	if len(c.modes) == 0 {
		return false
	}
	v := c.modes[0]
	c.modes = c.modes[1:]
	m.segment, m.chroma, m.luma, m.skipped = v&3, v>>2&3, v>>4&7, v&copiedEmpty != 0
	if m.byBlocks = m.luma == copiedByBlocks; !m.byBlocks {
		return m.luma < copiedByBlocks
	}
	if len(c.modes) < 8 {
		return false
	}
	both := binary.LittleEndian.Uint64(c.modes)
	upper, lower := both&nibbles, both>>4&nibbles
	binary.LittleEndian.PutUint64(m.blocks[:], upper)
	binary.LittleEndian.PutUint64(m.blocks[8:], lower)
	c.modes = c.modes[8:]
	return ((upper+tooHigh)|(lower+tooHigh))&^nibbles == 0
}

const (
	nibbles = 0x0f0f0f0f0f0f0f0f                     // the lower four bits of each byte
	tooHigh = (16 - blockModes) * 0x0101010101010101 // added to bytes makes more than four bits of those that are no modes
)

// readResidue reads the coefficients of a macroblock.
func (c *copyReader) readResidue(m *modes, f *factors, r *residue, k *kernels) {
	r.coefficients, r.counts = [allBlocks][16]int16{}, [pixelBlocks]uint8{}
	first := 16
	if !m.byBlocks {
		first = 0
	}
	k.readCopied(c, r, first)
	k.scale(r, f)
	if !m.byBlocks {
		inverseWalsh(&r.coefficients[secondBlock], &r.coefficients)
	}
}

// readCoefficients reads coefficients from one on, in the order of a copy.
func (c *copyReader) readCoefficients(r *residue, at int) {
	w := c.copyWindow
	for at < coefficientsEnd {
		if w.valid < 32 {
			w = w.load(c.data)
		}
		e := c.table[w.bits&(1<<copiedCodeBits-1)]
		rest := w.bits >> (e >> 8 & 63) & (1<<(e>>16&15) - 1)
		at += int(e >> 48)
		place := copiedPlaces[at]
		r.coefficients[place>>4][place&15] = int16(rest) + int16(e>>32)
		w.bits >>= e & 63
		w.valid -= int(e & 63)
	}
	c.copyWindow = w
}

// load refills a window, with zeros behind the end of the data.
func (w copyWindow) load(data []byte) copyWindow {
	if w.at+8 <= len(data) {
		w.bits |= binary.LittleEndian.Uint64(data[w.at:]) << w.valid
		n := (63 - w.valid) >> 3
		w.at, w.valid = w.at+n, w.valid+8*n
		return w
	}
	for ; w.valid <= 56; w.valid += 8 {
		if w.at < len(data) {
			w.bits |= uint64(data[w.at]) << w.valid
		}
		w.at++
	}
	return w
}

// scale multiplies all coefficients by their factors.
func (r *residue) scale(f *factors) {
	for i := range secondBlock + 1 {
		b, by := &r.coefficients[i], f.of(i)
		b[0] = int16(int32(b[0]) * by[0])
		for k := range b[1:] {
			b[1+k] = int16(int32(b[1+k]) * by[1])
		}
	}
}
