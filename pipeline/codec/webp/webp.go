// Package webp decodes WebP files, lossy, lossless and animated, to the RGB rows of a region. It gives the bytes of Pillow's
// convert("RGB"), which are libwebp's: transparency is dropped, not blended; colour profiles and orientation are ignored; of an
// animation the first frame remains, on black.
//
// Its own are the walk over the file's chunks, transparency's verdict, and the place on the canvas. Package vp8 decodes lossy pictures, package
// vp8l lossless ones. All of the data is parsed, for its verdict, whatever the region; of pixels none are made far below it. The package starts no
// goroutine.
package webp

import (
	"bytes"
	"errors"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/strip"
	"github.com/feedwater-io/feedwater/pipeline/codec/webp/vp8"
	"github.com/feedwater-io/feedwater/pipeline/codec/webp/vp8l"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// The verdicts. Every error of a Decoder that is about the file wraps one of them.
var (
	// ErrTruncated: the file ends before the picture does.
	ErrTruncated = errors.New("truncated WebP")
	// ErrBroken: a chunk or compressed data that makes no sense.
	ErrBroken = errors.New("broken WebP")
	// ErrLimit: a lossless picture, or transparency, of more pixels than a file of that size may have, or of more codes than any may have. libwebp
	// limits neither.
	ErrLimit = errors.New("too much for a WebP file")
)

// Decoder decodes one file after the other. It takes 1.5 bytes for each pixel of a lossy picture, 4 more where that has transparency,
// and 4 to 6 for each of a lossless one, and up to 150 MiB for codes of that. It keeps them for the next file, but for those of pictures of more than 8
// megapixels, and for codes of more than 16 MiB. It is not safe for concurrent use.
type Decoder struct {
	file     container
	parsed   bool
	known    bool   // the file was decoded before: nothing below the region is looked at
	verified bool   // the file was decoded now
	copied   []byte // what AppendCopy made of the file; empty: nothing
	lossy    *vp8.Decoder
	lossless *vp8l.Decoder
	// How each makes its rows: values of methods, which would be made anew for each picture.
	lossyRow, losslessRow rower
	rows                  strip.Writer
}

// NewDecoder returns a decoder that runs the kernels of the level.
func NewDecoder(level string) *Decoder {
	d := &Decoder{lossy: vp8.NewDecoder(level), lossless: vp8l.NewDecoder(level)}
	d.lossyRow, d.losslessRow = d.lossy.Row, d.lossless.Row
	return d
}

// Parse checks how the file is built and returns the picture's size. It allocates nothing that depends on the size, so the
// caller can refuse a size before Decode. The decoder keeps src until the next Parse or Release; it must not change.
func (d *Decoder) Parse(src []byte) (w, h int, err error) {
	d.parsed, d.known, d.verified, d.copied = false, false, false, nil
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
	d.parsed, d.known, d.verified, d.copied, d.file = false, false, false, nil, container{}
}

// UseVerified tells that the bytes of the parsed file were decoded before, without an error: Decode then looks at little below its region.
func (d *Decoder) UseVerified() { d.known = d.parsed }

// copyMark begins a copy.
const copyMark = "\x00w"

// IsCopy reports whether an index is a copy that AppendCopy made.
func IsCopy(index []byte) bool { return bytes.HasPrefix(index, []byte(copyMark)) }

// UseCopy is UseVerified, and has Decode read a copy that AppendCopy made of the very same bytes, in place of them. A copy that makes no sense is no harm:
// then the file is decoded. The decoder keeps the copy until the next Parse or Release; it must not change.
func (d *Decoder) UseCopy(index []byte) {
	if d.parsed && !d.file.first.lossless {
		d.known, d.copied = true, index[len(copyMark):]
	}
}

// LacksCopy reports whether the parsed file may have a copy, and is decoded without.
func (d *Decoder) LacksCopy() bool { return d.parsed && !d.file.first.lossless && d.copied == nil }

// AppendCopy appends a copy of the parsed file, which is known to decode: a record of the same picture that takes a fraction of the time to decode, and a
// quarter to a half more bytes than the file. It appends nothing where the file has none: lossless pictures, and few others.
func (d *Decoder) AppendCopy(dst []byte) []byte {
	f := &d.file.first
	if !d.Verified() || f.lossless {
		return dst
	}
	at := len(dst)
	copied := d.lossy.AppendCopy(append(dst, copyMark...), f.data, f.size.X, f.size.Y)
	if len(copied) == at+len(copyMark) {
		return dst
	}
	return copied
}

// Verified reports whether the parsed file is known to decode: whether Decode found it so, or UseVerified told.
func (d *Decoder) Verified() bool { return d.known || d.verified }

// Decode gives the pixels of region r of the parsed file to sink, top to bottom. An error about the file is the same whatever
// the region.
func (d *Decoder) Decode(r image.Rectangle, sink pixel.Sink) error {
	if err := strip.CheckRegion("webp", d.parsed, r, d.file.canvas.X, d.file.canvas.Y); err != nil {
		return err
	}
	defer func() {
		d.lossy.Trim(mostKept)
		d.lossless.Trim(mostKept)
	}()
	f := &d.file.first
	inside := r.Intersect(image.Rectangle{Max: f.size}.Add(f.at))
	row, err := d.decode(f, inside.Max.Y-f.at.Y)
	switch {
	case errors.Is(err, vp8l.ErrLimit):
		return fmt.Errorf("webp: %w: %w", ErrLimit, err)
	case err != nil:
		return fmt.Errorf("webp: %w: %w", ErrBroken, err)
	}
	d.verified = true
	d.rows.Begin(r.Dx(), sink)
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

// mostKept is how many pixels a decoder keeps memory for.
const mostKept = 8 << 20

// A rower makes RGB of the pixels of row y from x on, as many as dst has room for.
type rower func(dst []byte, x, y int)

// decode decodes a frame, and returns what makes its rows above bottom.
func (d *Decoder) decode(f *frame, bottom int) (rower, error) {
	bottom = max(bottom, 1)
	if f.lossless {
		return d.losslessRow, d.lossless.Decode(f.data, f.size.X, f.size.Y, bottom, !d.known)
	}
	if d.copied != nil {
		if d.lossy.DecodeCopy(d.copied, f.data, f.size.X, f.size.Y, bottom) {
			return d.lossyRow, nil
		}
		d.known, d.copied = false, nil
	}
	if err := d.lossy.Decode(f.data, f.size.X, f.size.Y, bottom, !d.known); err != nil {
		return nil, err
	}
	if f.alpha != nil && !d.known {
		if err := d.checkAlpha(f.alpha, f.size); err != nil {
			return nil, err
		}
	}
	return d.lossyRow, nil
}

// checkAlpha decides whether the transparency decodes. Its values go unused.
func (d *Decoder) checkAlpha(b []byte, size image.Point) error {
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
	return d.lossless.CheckAlpha(b[1:], size.X, size.Y)
}
