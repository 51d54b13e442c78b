package vp8

import (
	"encoding/binary"
	"math/bits"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/prefix"
)

// copier writes a copy, in two passes over all macroblocks.
type copier struct {
	counts [copySymbols]int // of each symbol
	dst    []byte
	codes  [copySymbols]uint16 // with their first bit lowest
	sizes  [copySymbols]uint8
	modes  []byte
	data   []byte // that are whole bytes of coefficients
	bits   uint64 // the lowest n are to be written
	n      int
}

// newCopier returns a copier that has counted two symbols, without which a code may not be complete.
func newCopier() *copier {
	c := &copier{}
	c.counts[symbolRest], c.counts[symbolZeros] = 1, 1
	return c
}

// count counts the symbols of a macroblock, and reports whether it has a copy.
func (c *copier) count(m *modes, r *residue, f *factors) bool {
	if m.skipped {
		return true
	}
	return walkSymbols(m, r, f, func(symbol int, _ uint64, _ int) { c.counts[symbol]++ })
}

// begin begins the copy behind dst, with codes of such lengths.
func (c *copier) begin(dst []byte, lengths []uint8) {
	c.dst, c.sizes = dst, [copySymbols]uint8(lengths)
	for i := 0; i < len(lengths); i += 2 {
		c.dst = append(c.dst, lengths[i]|lengths[i+1]<<4)
	}
	counts := prefix.Count(lengths)
	eachCode(&counts, &c.sizes, func(symbol uint16, code uint32, _ int) { c.codes[symbol] = uint16(code) })
}

// write writes a macroblock.
func (c *copier) write(m *modes, r *residue, f *factors) bool {
	luma, empty := m.luma, uint8(0)
	if m.byBlocks {
		luma = copiedByBlocks
	}
	if m.skipped {
		empty = copiedEmpty
	}
	c.modes = append(c.modes, m.segment|m.chroma<<2|luma<<4|empty)
	for i := range 8 * number(m.byBlocks) {
		c.modes = append(c.modes, m.blocks[i]|m.blocks[8+i]<<4)
	}
	return m.skipped || walkSymbols(m, r, f, c.writeSymbol)
}

func (c *copier) writeSymbol(symbol int, rest uint64, size int) {
	n := int(c.sizes[symbol])
	c.bits |= (rest<<n | uint64(c.codes[symbol])) << c.n
	for c.n += n + size; c.n >= 8; c.n -= 8 {
		c.data = append(c.data, byte(c.bits))
		c.bits >>= 8
	}
}

// finish returns all that was written.
func (c *copier) finish() []byte {
	dst := binary.AppendUvarint(c.dst, uint64(len(c.modes)))
	dst = append(append(dst, c.modes...), c.data...)
	return append(dst, byte(c.bits))
}

// walkSymbols calls emit for each symbol of a macroblock, with the bits that follow it, so many. It reports whether they say all of the residue: how blocks
// are transformed too.
func walkSymbols(m *modes, r *residue, f *factors, emit func(symbol int, rest uint64, size int)) bool {
	run, at := 0, 0
	if m.byBlocks {
		at = 16
	}
	for ; at < coefficientsEnd; at++ {
		v, exact := r.quantized(int(copiedPlaces[at+1]), !m.byBlocks, f)
		if !exact {
			return false
		}
		if v == 0 {
			run++
			continue
		}
		for ; run > 31; run -= 32 {
			emit(symbolZeros, 0, 0)
		}
		magnitude := uint32(max(v, -v))
		size := bits.Len32(magnitude)
		if size > copiedSize {
			return false
		}
		rest := uint64(magnitude)
		if v < 0 {
			rest = ^rest
		}
		emit(run<<5|size<<1|int(number(v < 0)), rest&(1<<(size-1)-1), size-1)
		run = 0
	}
	if run > 0 {
		emit(symbolRest, 0, 0)
	}
	return r.kindsFollow()
}

// quantized is the coefficient at a place before it was multiplied by its factor, and whether that gives it. With whole the first ones of blocks of luma
// come from second order.
func (r *residue) quantized(place int, whole bool, f *factors) (v int32, exact bool) {
	i, first := place/16, place%16 == 0
	if r.coefficients[i][place%16] == 0 || whole && first && i < lumaBlocks {
		return 0, true
	}
	factor := f.of(i)[1]
	if first {
		factor = f.of(i)[0]
	}
	v = int32(r.coefficients[i][place%16]) / factor
	return v, int16(v*factor) == r.coefficients[i][place%16]
}

// kindsFollow reports whether the coefficients say how blocks are transformed.
func (r *residue) kindsFollow() bool {
	for i, n := range r.counts {
		if kindsOfCounts[min(n, 4)] > kindOf(&r.coefficients[i]) {
			return false
		}
	}
	return true
}
