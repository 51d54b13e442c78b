// Package vp8 decodes key frames of VP8 (RFC 6386), the lossy pictures of WebP files, to Y, Cb and Cr. It makes the samples that libwebp makes, and
// refuses what libwebp refuses, also of damaged data: sums that overflow do so as in libwebp's code for x86. It starts no goroutine.
package vp8

import (
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// Decoder decodes one picture after the other. It keeps its memory for the next one: 1.5 bytes for each pixel, in whole macroblocks of
// 16×16 and one more to the left, and some 50 bytes for each column of macroblocks. It is not safe for concurrent use.
type Decoder struct {
	kernels kernels

	width, height int // of the last picture
	columns, rows int // of macroblocks
	picture
	first           partition
	tokens          [8]partition
	partitions      int
	segment         segmentHeader
	filter          filterHeader
	factors         [segments]factors
	strengths       [segments][2]strength
	probabilities   tokenProbabilities
	skips           bool
	skipProbability uint8

	modesAbove  []uint8 // of blocks, four for each macroblock
	modesLeft   [4]uint8
	above       []context
	left        context
	filters     [2][]strength // of even and odd rows
	residue     residue
	differences differences
	copied      copyReader
	chroma      [2][]byte // a row of each in full size
}

// NewDecoder returns a decoder that runs the kernels of the level.
func NewDecoder(level string) *Decoder {
	return &Decoder{kernels: kernels{kernel.Vector(level)}}
}

// Decode decodes a picture of w×h pixels, 1 to 16383 each, from the data of its chunk, whose first 10 bytes are known to make sense. Row gives its pixels
// until the next call: those of rows above bottom, which is 1 to h. Data that only lower ones need is parsed where rest is set, for
// its errors alone, and else not looked at.
func (d *Decoder) Decode(data []byte, w, h, bottom int, rest bool) error {
	defer d.release()
	if err := d.begin(data, w, h); err != nil {
		return err
	}
	d.makeRoom(d.columns, d.rows)
	d.readProbabilities()
	made := d.rowsMade(bottom)
	parsed := made
	if rest {
		parsed = d.rows
	}
	for y := range parsed {
		if err := d.decodeRow(y, y < made); err != nil {
			return err
		}
	}
	d.filterRow(made - 1)
	return nil
}

// begin reads the headers of data, and makes room for all but the planes.
func (d *Decoder) begin(data []byte, w, h int) error {
	d.columns, d.rows = (w+15)/16, (h+15)/16
	if err := d.readHeaders(data); err != nil {
		return err
	}
	d.width, d.height = w, h
	d.makeContexts()
	return nil
}

// release lets go of the data.
func (d *Decoder) release() { d.first, d.tokens = partition{}, [8]partition{} }

// rowsMade is how many rows of macroblocks are made for pixels above bottom: a row changes the one above when it is filtered.
func (d *Decoder) rowsMade(bottom int) int { return min(d.rows, (bottom-1)/16+2) }

// Trim lets go of memory for more than so many pixels.
func (d *Decoder) Trim(most int) {
	if cap(d.luma.samples) > most {
		d.picture = picture{}
	}
}

// makeContexts makes room for what is kept of each column, and clears what is above the first row.
func (d *Decoder) makeContexts() {
	d.modesAbove = grown(d.modesAbove, 4*d.columns)
	d.above = grown(d.above, d.columns)
	for i := range d.filters {
		d.filters[i] = grown(d.filters[i], d.columns)
	}
	clear(d.modesAbove)
	clear(d.above)
}

// grown returns s with length n; its contents are undefined.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// decodeRow parses a row of macroblocks and, with made, makes its pixels.
func (d *Decoder) decodeRow(y int, made bool) error {
	d.beginParsing()
	if made {
		d.beginRow(y)
	}
	var m modes
	for x := range d.columns {
		if err := d.parseMacroblock(&m, x, y); err != nil {
			return err
		}
		if made {
			d.makeMacroblock(&m, x, y)
		}
	}
	if d.first.over {
		return fmt.Errorf("%w: the modes of row %d end", ErrData, y)
	}
	if made {
		d.filterAbove(y)
	}
	return nil
}

// beginParsing sets what is to the left of the first macroblock of a row in the data.
func (d *Decoder) beginParsing() { d.modesLeft, d.left = [4]uint8{}, context{} }

// parseMacroblock reads the modes and coefficients of a macroblock, the next one in the data.
func (d *Decoder) parseMacroblock(m *modes, x, y int) error {
	d.readModes(m, x)
	p, above := &d.tokens[y&(d.partitions-1)], &d.above[x]
	if m.skipped {
		d.skipResidue(m, above)
	} else {
		d.readResidue(p, m, above, &d.left, &d.residue)
	}
	if p.over {
		return fmt.Errorf("%w: the coefficients of row %d end", ErrData, y)
	}
	return nil
}

// makeMacroblock makes the pixels of a macroblock of which modes and coefficients are known, before they are filtered.
func (d *Decoder) makeMacroblock(m *modes, x, y int) {
	any := d.reconstruct(m, x, y)
	s := &d.filters[y&1][x]
	*s = d.strengths[m.segment][number(m.byBlocks)]
	s.inner = m.byBlocks || any
}

// skipResidue is for a macroblock without coefficients.
func (d *Decoder) skipResidue(m *modes, above *context) {
	second := [2][1]uint8{above.second, d.left.second}
	*above, d.left = context{}, context{}
	if m.byBlocks {
		above.second, d.left.second = second[0], second[1]
	}
}
