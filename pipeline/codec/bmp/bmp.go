// Package bmp decodes regions of BMP files to RGB rows: OS/2 and Windows headers, 1, 4, 8, 16, 24 and 32 bits, masks, run
// lengths, either direction. It gives the bytes of Pillow's convert("RGB") and refuses what Pillow refuses: transparency is
// dropped, and of masks only the usual ones are known. Only the rows of the region are looked at, but for run lengths. The
// package starts no goroutine.
package bmp

import (
	"errors"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/strip"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// The verdicts. Every error of a Decoder that is about the file wraps one of them.
var (
	// ErrTruncated: the file ends before the picture does.
	ErrTruncated = errors.New("truncated BMP")
	// ErrBroken: a header that makes no sense.
	ErrBroken = errors.New("broken BMP")
	// ErrUnsupported: a kind of BMP that neither Pillow nor this package decodes.
	ErrUnsupported = errors.New("unsupported kind of BMP")
)

// Decoder decodes one file after the other. For run lengths it keeps memory for the next file, a byte for each pixel. It is not
// safe for concurrent use.
type Decoder struct {
	file   header
	parsed bool
	runs   []byte
	rows   strip.Writer
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder { return new(Decoder) }

// Parse reads the header and returns the picture's size. It allocates nothing, so the caller can refuse a size before Decode.
// The decoder keeps src until the next Parse or Release; it must not change.
func (d *Decoder) Parse(src []byte) (w, h int, err error) {
	d.parsed = false
	if err := d.file.read(src); err != nil {
		return 0, 0, fmt.Errorf("bmp: %w", err)
	}
	d.parsed = true
	return d.file.w, d.file.h, nil
}

// Release lets go of the parsed file.
func (d *Decoder) Release() { d.parsed, d.file.src = false, nil }

// Decode gives the pixels of region r of the parsed file to sink, top to bottom. An error about the file is the same whatever
// the region.
func (d *Decoder) Decode(r image.Rectangle, sink pixel.Sink) error {
	f := &d.file
	if err := strip.CheckRegion("bmp", d.parsed, r, f.w, f.h); err != nil {
		return err
	}
	defer func() { d.runs = strip.Keep(d.runs) }()
	data, err := d.data()
	if err != nil {
		return fmt.Errorf("bmp: %w", err)
	}
	d.rows.Begin(r.Dx(), sink)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		stored := y
		if !f.topDown {
			stored = f.h - 1 - y
		}
		f.layout.expand(d.rows.Row(), data[stored*f.stride:], r.Min.X)
	}
	d.rows.Flush()
	return nil
}

// data returns the rows as they are stored. The last one need not be padded.
func (d *Decoder) data() ([]byte, error) {
	f := &d.file
	data := f.src[min(f.offset, len(f.src)):]
	if f.runs {
		var err error
		d.runs, err = f.expandRuns(d.runs[:0])
		data = d.runs
		if err != nil {
			return nil, err
		}
	}
	if need := int64(f.stride)*int64(f.h-1) + int64(f.w*f.layout.bits+7)/8; int64(len(data)) < need {
		return nil, fmt.Errorf("%w: %d bytes of pixels where %d should be", ErrTruncated, len(data), need)
	}
	return data, nil
}
