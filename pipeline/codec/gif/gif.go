// Package gif decodes the first frame of GIF files to the RGB rows of a region. It gives the bytes of Pillow's convert("RGB"):
// transparency is dropped; what the frame leaves free is the transparent color, or color 0; a palette that says grey i for
// every i counts as none. What follows the first frame's last pixel is not read. The whole frame is decoded whatever the
// region. The package starts no goroutine.
package gif

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/strip"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// The verdicts. Every error of a Decoder that is about the file wraps one of them.
var (
	// ErrTruncated: the file ends before the picture does.
	ErrTruncated = errors.New("truncated GIF")
	// ErrBroken: a block or compressed data that makes no sense.
	ErrBroken = errors.New("broken GIF")
)

// Decoder decodes one file after the other. It keeps its memory for the next file: a byte for each pixel of the frame. It is
// not safe for concurrent use.
type Decoder struct {
	file   header
	parsed bool
	lzw    lzw
	frame  []byte
	rows   strip.Writer
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder { return new(Decoder) }

// Parse reads what stands in front of the first frame's data and returns the picture's size. It allocates nothing, so the
// caller can refuse a size before Decode. The decoder keeps src until the next Parse or Release; it must not change.
func (d *Decoder) Parse(src []byte) (w, h int, err error) {
	d.parsed = false
	if err := d.file.read(src); err != nil {
		return 0, 0, fmt.Errorf("gif: %w", err)
	}
	d.parsed = true
	return d.file.size.X, d.file.size.Y, nil
}

// Release lets go of the parsed file.
func (d *Decoder) Release() { d.parsed, d.file.data = false, nil }

// Decode gives the pixels of region r of the parsed file to sink, top to bottom. An error about the file is the same whatever
// the region.
func (d *Decoder) Decode(r image.Rectangle, sink pixel.Sink) error {
	if err := strip.CheckRegion("gif", d.parsed, r, d.file.size.X, d.file.size.Y); err != nil {
		return err
	}
	defer func() { d.frame = strip.Keep(d.frame) }()
	if err := d.decode(); err != nil {
		return fmt.Errorf("gif: %w", err)
	}
	d.give(r, sink)
	return nil
}

// decode makes the indices of the frame.
func (d *Decoder) decode() error {
	f := &d.file
	n := f.frame.Dx() * f.frame.Dy()
	// A code makes at most as many pixels as the table is long, and takes as many bits as it had at first.
	if most := (8*int64(len(f.data))/int64(f.bits+1) + 1) * tableSize; int64(n) > most {
		return fmt.Errorf("%w: %d bytes cannot hold %d pixels", ErrTruncated, len(f.data), n)
	}
	if cap(d.frame) < n {
		d.frame = make([]byte, n)
	}
	d.frame = d.frame[:n]
	return d.lzw.decode(d.frame, f.data, f.bits)
}

// give hands the region on.
func (d *Decoder) give(r image.Rectangle, sink pixel.Sink) {
	f := &d.file
	d.rows.Begin(r.Dx(), sink)
	inside := r.Intersect(f.frame)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		dst := d.rows.Row()
		if y < inside.Min.Y || y >= inside.Max.Y {
			f.fill(dst)
			continue
		}
		left, right := 3*(inside.Min.X-r.Min.X), 3*(inside.Max.X-r.Min.X)
		f.fill(dst[:left])
		f.fill(dst[right:])
		w := f.frame.Dx()
		row := d.frame[f.stored(y-f.frame.Min.Y)*w:][:w]
		f.colors(dst[left:right], row[inside.Min.X-f.frame.Min.X:])
	}
	d.rows.Flush()
}

// header is everything but the pixels.
type header struct {
	size       image.Point
	frame      image.Rectangle
	background byte // of what the frame leaves free
	interlaced bool
	bits       int // of a pixel
	data       []byte
	palette    [256][3]byte
}

// read reads up to the pixels, with all of Pillow's habits.
func (f *header) read(src []byte) error {
	if len(src) < 13 || string(src[:6]) != "GIF87a" && string(src[:6]) != "GIF89a" {
		return fmt.Errorf("%w: no header", ErrBroken)
	}
	f.size = image.Pt(int(binary.LittleEndian.Uint16(src[6:])), int(binary.LittleEndian.Uint16(src[8:])))
	b := blocks{src: src, at: 13}
	var global []byte
	if src[10]&0x80 != 0 {
		global = b.palette(src[10])
	}
	transparent, err := b.toFrame()
	if err != nil {
		return err
	}
	f.background = byte(max(transparent, 0))
	return f.image(&b, global)
}

// image reads the head of a frame.
func (f *header) image(b *blocks, global []byte) error {
	h := b.take(9)
	if len(h) < 9 {
		return fmt.Errorf("%w in the frame's head", ErrTruncated)
	}
	u16 := func(i int) int { return int(binary.LittleEndian.Uint16(h[i:])) }
	f.frame = image.Rect(u16(0), u16(2), u16(0)+u16(4), u16(2)+u16(6))
	f.size = image.Pt(max(f.size.X, f.frame.Max.X), max(f.size.Y, f.frame.Max.Y))
	f.interlaced = h[8]&0x40 != 0
	palette := global
	if h[8]&0x80 != 0 {
		if local := b.palette(h[8]); !ramp(local) {
			palette = local
		}
	}
	bits := b.take(1)
	switch {
	case len(bits) == 0:
		return fmt.Errorf("%w behind the frame's head", ErrTruncated)
	case bits[0] > codeBits:
		return fmt.Errorf("%w: codes of %d bits", ErrBroken, bits[0])
	case f.frame.Empty():
		return fmt.Errorf("%w: a frame at %v", ErrBroken, f.frame)
	}
	f.bits, f.data = int(bits[0]), b.src[b.at:]
	f.look(palette)
	return nil
}

// ramp says whether a palette has grey i for every i. Pillow goes on as if it were not there.
func ramp(palette []byte) bool {
	for i := range len(palette) / 3 {
		if [3]byte(palette[3*i:]) != [3]byte{byte(i), byte(i), byte(i)} {
			return false
		}
	}
	return true
}

// look sets what the indices look like. Without a palette they are greys; what a palette lacks is black.
func (f *header) look(palette []byte) {
	greys := ramp(palette)
	for i := range f.palette {
		switch {
		case greys:
			f.palette[i] = [3]byte{byte(i), byte(i), byte(i)}
		case 3*i+3 <= len(palette):
			f.palette[i] = [3]byte(palette[3*i:])
		default:
			f.palette[i] = [3]byte{}
		}
	}
}

func (f *header) colors(dst, indices []byte) {
	for i := range len(dst) / 3 {
		*(*[3]byte)(dst[3*i:]) = f.palette[indices[i]]
	}
}

func (f *header) fill(dst []byte) {
	for i := range len(dst) / 3 {
		*(*[3]byte)(dst[3*i:]) = f.palette[f.background]
	}
}

// stored is the place, among the rows as they are stored, of row y of the frame.
func (f *header) stored(y int) int {
	if !f.interlaced {
		return y
	}
	h := f.frame.Dy()
	before := 0
	for _, p := range [4]struct{ first, step int }{{0, 8}, {4, 8}, {2, 4}, {1, 2}} {
		if y%p.step == p.first {
			return before + y/p.step
		}
		before += max(0, h-p.first+p.step-1) / p.step
	}
	panic("every row is in one of the four passes")
}
