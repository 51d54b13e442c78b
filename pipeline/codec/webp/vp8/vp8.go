// Package vp8 decodes key frames of VP8 (RFC 6386), the lossy pictures of WebP files, to Y, Cb and Cr. It makes the samples that libwebp makes, and
// refuses what libwebp refuses, also of damaged data: sums that overflow do so as in libwebp's code for x86. It starts no goroutine.
package vp8

import (
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// Decoder decodes one picture after the other. It keeps its memory for the next one: 1.5 bytes for each pixel, in whole macroblocks of
// 16×16, and some 40 bytes for each column of macroblocks. It is not safe for concurrent use.
type Decoder struct {
	image.YCbCr // of the last picture
	kernels     kernels

	columns, rows   int // of macroblocks
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

	modesAbove []uint8 // of blocks, four for each macroblock
	modesLeft  [4]uint8
	above      []context
	left       context
	filters    []strength
	edges      []edge
	canvas     [canvasSize]byte
	residue    residue
	copied     copyReader
	chroma     [2][]byte // a row of each in full size
}

// edge is the lowest row of a macroblock, before it is filtered.
type edge struct {
	luma   [16]byte
	cb, cr [8]byte
}

// NewDecoder returns a decoder that runs the kernels of the level.
func NewDecoder(level string) *Decoder {
	return &Decoder{kernels: kernels{kernel.Vector(level)}}
}

// Decode decodes a picture of w×h pixels, 1 to 16383 each, from the data of its chunk, whose first 10 bytes are known to make sense. The samples are in
// the embedded YCbCr until the next call: those of rows above bottom, which is 1 to h. Data that only lower ones need is parsed where rest is set, for
// its errors alone, and else not looked at.
func (d *Decoder) Decode(data []byte, w, h, bottom int, rest bool) error {
	defer d.release()
	if err := d.begin(data, w, h); err != nil {
		return err
	}
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
	return nil
}

// begin reads the headers of data.
func (d *Decoder) begin(data []byte, w, h int) error {
	d.columns, d.rows = (w+15)/16, (h+15)/16
	if err := d.readHeaders(data); err != nil {
		return err
	}
	d.makeRoom(w, h)
	return nil
}

// release lets go of the data.
func (d *Decoder) release() { d.first, d.tokens = partition{}, [8]partition{} }

// rowsMade is how many rows of macroblocks are made for pixels above bottom: a row changes the one above when it is filtered.
func (d *Decoder) rowsMade(bottom int) int { return min(d.rows, (bottom-1)/16+2) }

// Trim lets go of memory for more than so many pixels.
func (d *Decoder) Trim(most int) {
	if cap(d.Y) > most {
		d.Y, d.Cb, d.Cr = nil, nil, nil
	}
}

// makeRoom makes room for a picture.
func (d *Decoder) makeRoom(w, h int) {
	luma, chroma := 256*d.columns*d.rows, 64*d.columns*d.rows
	d.Y, d.Cb, d.Cr = grown(d.Y, luma), grown(d.Cb, chroma), grown(d.Cr, chroma)
	d.YStride, d.CStride = 16*d.columns, 8*d.columns
	d.Rect, d.SubsampleRatio = image.Rect(0, 0, w, h), image.YCbCrSubsampleRatio420
	d.modesAbove = grown(d.modesAbove, 4*d.columns)
	d.above = grown(d.above, d.columns)
	d.filters = grown(d.filters, d.columns)
	d.edges = grown(d.edges, d.columns+1)
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
		d.filterRow(y)
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
	s := &d.filters[x]
	*s = d.strengths[m.segment][number(m.byBlocks)]
	s.inner = m.byBlocks || d.residue.any
	d.reconstruct(m, x, y)
}

// skipResidue is for a macroblock without coefficients.
func (d *Decoder) skipResidue(m *modes, above *context) {
	second := [2][1]uint8{above.second, d.left.second}
	*above, d.left = context{}, context{}
	if m.byBlocks {
		above.second, d.left.second = second[0], second[1]
	}
	d.residue.setNone()
}
