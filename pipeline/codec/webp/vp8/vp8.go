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
	defer func() { d.first, d.tokens = partition{}, [8]partition{} }() // which hold the data
	d.columns, d.rows = (w+15)/16, (h+15)/16
	if err := d.readHeaders(data); err != nil {
		return err
	}
	d.makeRoom(w, h)
	made := min(d.rows, (bottom-1)/16+2) // a row changes the one above when it is filtered
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
	d.modesLeft, d.left = [4]uint8{}, context{}
	p := &d.tokens[y&(d.partitions-1)]
	if made {
		d.beginRow(y)
	}
	var m modes
	for x := range d.columns {
		d.readModes(&m, x)
		above, r := &d.above[x], &d.residue
		if m.skipped {
			d.skipResidue(&m, above)
		} else {
			d.readResidue(p, &m, above, &d.left, r)
		}
		if p.over {
			return fmt.Errorf("%w: the coefficients of row %d end", ErrData, y)
		}
		if made {
			d.filters[x] = d.strengths[m.segment][number(m.byBlocks)]
			d.filters[x].inner = m.byBlocks || r.any
			d.reconstruct(&m, x, y)
		}
	}
	if d.first.over {
		return fmt.Errorf("%w: the modes of row %d end", ErrData, y)
	}
	if made && d.filter.level > 0 {
		d.filterRow(y)
	}
	return nil
}

// skipResidue is for a macroblock without coefficients.
func (d *Decoder) skipResidue(m *modes, above *context) {
	second := [2][1]uint8{above.second, d.left.second}
	*above, d.left = context{}, context{}
	if m.byBlocks {
		above.second, d.left.second = second[0], second[1]
	}
	d.residue.any = false
	d.residue.kinds = [24]uint8{}
}
