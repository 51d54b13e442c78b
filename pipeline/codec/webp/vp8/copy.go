package vp8

import "github.com/feedwater-io/feedwater/pipeline/codec/internal/prefix"

// A copy says in another way what the data of a picture says behind its headers: coefficients by a prefix code, which takes a fraction of the time that
// arithmetic decoding takes. It goes with the data, which has the headers, and is some quarter larger. As bytes it is
//
//	the lengths of the codes of all symbols, four bits each, the first symbol's lowest
//	uvarint bytes of modes, and the modes: of each macroblock a byte, and of one that is predicted by blocks eight more: in the lower four bits
//	the mode of each block of the upper half, in the others that of the block two lines below
//	the coefficients of all macroblocks, bits in bytes from the lowest on
//
// A macroblock's byte is segment | chroma<<2 | luma<<4 | empty<<7, where luma is copiedByBlocks or a mode. One that is not empty has symbols for the
// coefficients of all its blocks in turn, 16 of second order first unless it is predicted by blocks. A symbol is run<<5 | size<<1 | negative: so many
// coefficients are 0, and behind them comes one of so many bits, the lower ones of which follow the symbol's code, without the highest, of a negative one
// turned over.
const (
	copySymbols = 1 << 10
	symbolRest  = 0       // all coefficients that are left are 0
	symbolZeros = 31 << 5 // 32 coefficients are 0

	copiedByBlocks = 4
	copiedEmpty    = 1 << 7

	copiedCodeBits  = 11 // of a symbol's code at most
	copiedSize      = 12 // bits of a coefficient at most
	coefficientsEnd = 16 * (pixelBlocks + 1)
)

// copiedPlaces tells where in a residue each coefficient is in the order of a copy, counted from 1; what comes behind the last one is in the spare block.
var copiedPlaces [copySymbols]uint16

func init() {
	for i := range copiedPlaces {
		place := 16 * spareBlock
		switch {
		case i == 0:
		case i <= 16:
			place = 16*secondBlock + int(zigzag[i-1])
		case i <= coefficientsEnd:
			place = (i-17)&^15 + int(zigzag[(i-1)&15])
		}
		copiedPlaces[i] = uint16(place)
	}
}

// eachCode calls take for each symbol that has a code, of lengths that are counted, in the order of the codes: with its code, the first bit lowest, and the
// code's length.
func eachCode(counts *prefix.Counts, lengths *[copySymbols]uint8, take func(symbol uint16, code uint32, n int)) {
	var symbols [copySymbols]uint16
	counts.SortSymbols(symbols[:], lengths[:])
	code, k := uint32(0), 0
	for n := 1; n < len(counts); n++ {
		for range counts[n] {
			take(symbols[k], code, n)
			code = prefix.NextCode(code, n)
			k++
		}
	}
}

// DecodeCopy is Decode for data that decode, and of which AppendCopy made a copy. It reports whether the copy makes sense; where it does not the
// samples are undefined.
func (d *Decoder) DecodeCopy(copied, data []byte, w, h, bottom int) bool {
	defer d.release()
	if d.begin(data, w, h) != nil || !d.copied.open(copied) {
		return false
	}
	defer d.copied.release()
	d.makeRoom(d.columns, d.rows)
	made := d.rowsMade(bottom)
	for y := range made {
		if !d.makeCopiedRow(y) {
			return false
		}
	}
	d.filterRow(made - 1)
	return !d.copied.over()
}

// makeCopiedRow makes the pixels of a row of macroblocks.
func (d *Decoder) makeCopiedRow(y int) bool {
	var m modes
	d.beginRow(y)
	for x := range d.columns {
		if !d.copied.readModes(&m) {
			return false
		}
		if !m.skipped {
			d.copied.readResidue(&m, &d.factors[m.segment], &d.residue, &d.kernels)
		}
		d.makeMacroblock(&m, x, y)
	}
	d.filterAbove(y)
	return true
}

// AppendCopy appends the copy of a picture whose data decode. It appends nothing where the data have values that no encoder writes, or so little of anything
// that the copy would be much larger.
func (d *Decoder) AppendCopy(dst, data []byte, w, h int) []byte {
	defer d.release()
	c := newCopier()
	if !d.parseAll(data, w, h, c.count) {
		return dst
	}
	c.begin(dst, prefix.Lengths(c.counts[:], copiedCodeBits))
	if !d.parseAll(data, w, h, c.write) {
		return dst
	}
	if copied := c.finish(); len(copied)-len(dst) <= 2*len(data)+copySymbols {
		return copied
	}
	return dst
}

// parseAll calls take for each macroblock of data, and reports whether all of them were taken.
func (d *Decoder) parseAll(data []byte, w, h int, take func(*modes, *residue, *factors) bool) bool {
	if d.begin(data, w, h) != nil {
		return false
	}
	d.readProbabilities()
	var m modes
	for y := range d.rows {
		d.beginParsing()
		for x := range d.columns {
			if d.parseMacroblock(&m, x, y) != nil || !take(&m, &d.residue, &d.factors[m.segment]) {
				return false
			}
		}
	}
	return true
}
