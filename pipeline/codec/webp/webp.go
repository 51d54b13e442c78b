// Package webp decodes WebP files, lossy, lossless and animated, to the RGB rows of a region. It gives the bytes of Pillow's
// convert("RGB"), which are libwebp's: transparency is dropped, not blended; colour profiles and orientation are ignored; of an
// animation the first frame remains, on black.
//
// golang.org/x/image makes the samples, which are libwebp's. What differs there is ours: the walk over the file's chunks, which
// decides the verdict, and the way from Y, Cb and Cr to RGB. The whole picture is decoded whatever the region. The package
// starts no goroutine.
package webp

import (
	"bytes"
	"errors"
	"fmt"
	"image"

	"golang.org/x/image/vp8"
	"golang.org/x/image/vp8l"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/strip"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// The verdicts. Every error of a Decoder that is about the file wraps one of them.
var (
	// ErrTruncated: the file ends before the picture does.
	ErrTruncated = errors.New("truncated WebP")
	// ErrBroken: a chunk or compressed data that makes no sense.
	ErrBroken = errors.New("broken WebP")
	// ErrLimit: a lossless picture, or transparency, of more pixels than a file of that size may have, which libwebp does not limit.
	ErrLimit = errors.New("too much for a WebP file of that size")
)

// Decoder decodes one file after the other. While it decodes it takes 1.5 bytes for each pixel of a lossy picture, 4 more where
// that has transparency, and 8 for each of a lossless one. It is not safe for concurrent use.
type Decoder struct {
	file   container
	parsed bool
	data   bytes.Reader
	rows   strip.Writer
	chroma [2][]byte
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder { return new(Decoder) }

// Parse checks how the file is built and returns the picture's size. It allocates nothing that depends on the size, so the
// caller can refuse a size before Decode. The decoder keeps src until the next Parse or Release; it must not change.
func (d *Decoder) Parse(src []byte) (w, h int, err error) {
	d.parsed = false
	if err := d.file.read(src); err != nil {
		return 0, 0, fmt.Errorf("webp: %w", err)
	}
	if err := d.file.checkWork(); err != nil {
		return 0, 0, fmt.Errorf("webp: %w", err)
	}
	d.parsed = true
	return d.file.canvas.X, d.file.canvas.Y, nil
}

// Release lets go of the parsed file.
func (d *Decoder) Release() {
	d.parsed, d.file = false, container{}
	d.data.Reset(nil)
}

// Decode gives the pixels of region r of the parsed file to sink, top to bottom. An error about the file is the same whatever
// the region.
func (d *Decoder) Decode(r image.Rectangle, sink pixel.Sink) error {
	if err := strip.CheckRegion("webp", d.parsed, r, d.file.canvas.X, d.file.canvas.Y); err != nil {
		return err
	}
	row, err := d.decode(&d.file.first)
	if err != nil {
		return fmt.Errorf("webp: %w: %w", ErrBroken, err)
	}
	d.rows.Begin(r.Dx(), sink)
	f := &d.file.first
	inside := r.Intersect(image.Rectangle{Max: f.size}.Add(f.at))
	for y := r.Min.Y; y < r.Max.Y; y++ {
		dst := d.rows.Row()
		if y < inside.Min.Y || y >= inside.Max.Y || inside.Empty() {
			clear(dst)
			continue
		}
		clear(dst[:3*(inside.Min.X-r.Min.X)])
		clear(dst[3*(inside.Max.X-r.Min.X):])
		row(dst[3*(inside.Min.X-r.Min.X):3*(inside.Max.X-r.Min.X)], inside.Min.X-f.at.X, y-f.at.Y)
	}
	d.rows.Flush()
	return nil
}

// A rower makes RGB of the pixels of row y from x on, as many as dst has room for.
type rower func(dst []byte, x, y int)

func (d *Decoder) decode(f *frame) (rower, error) {
	d.data.Reset(f.data)
	if f.lossless {
		m, err := vp8l.Decode(&d.data)
		if err != nil {
			return nil, err
		}
		return (*lossless)(m.(*image.NRGBA)).row, nil
	}
	lossy := vp8.NewDecoder() // one that has decoded another picture keeps some of its filter's strengths
	lossy.Init(&d.data, len(f.data))
	if _, err := lossy.DecodeFrameHeader(); err != nil {
		return nil, err
	}
	m, err := lossy.DecodeFrame()
	if err != nil {
		return nil, err
	}
	if f.alpha != nil {
		if err := checkAlpha(f.alpha, f.size); err != nil {
			return nil, err
		}
	}
	for i := range d.chroma {
		if cap(d.chroma[i]) < f.size.X+1 {
			d.chroma[i] = make([]byte, f.size.X+1)
		}
	}
	return (&planes{m, d.chroma}).row, nil
}

// checkAlpha decides whether the transparency decodes. Its values go unused.
func checkAlpha(b []byte, size image.Point) error {
	if len(b) < 2 {
		return errors.New("no transparency data")
	}
	method, cleaned, reserved := b[0]&3, b[0]>>4&3, b[0]>>6
	switch {
	case method > 1 || cleaned > 1 || reserved > 0:
		return fmt.Errorf("transparency of kind %#x", b[0])
	case method == 0 && len(b)-1 < size.X*size.Y:
		return fmt.Errorf("%d bytes of transparency", len(b)-1)
	case method == 0:
		return nil
	}
	// The data is a lossless picture without its header: a mark, and 14 bits for each side less one.
	w, h := size.X-1, size.Y-1
	header := []byte{0x2f, byte(w), byte(w>>8) | byte(h<<6), byte(h >> 2), byte(h >> 10)}
	_, err := vp8l.Decode(bytes.NewReader(append(header, b[1:]...)))
	return err
}

type lossless image.NRGBA

func (m *lossless) row(dst []byte, x, y int) {
	src := m.Pix[y*m.Stride+4*x:]
	for i := range len(dst) / 3 {
		s, d := src[4*i:][:4], dst[3*i:][:3]
		d[0], d[1], d[2] = s[0], s[1], s[2]
	}
}
