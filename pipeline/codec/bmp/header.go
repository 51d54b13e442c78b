package bmp

import (
	"encoding/binary"
	"fmt"
)

// header is everything but the pixels.
type header struct {
	src     []byte
	w, h    int
	topDown bool
	stride  int
	offset  int // of the pixels
	runs    bool
	four    bool // runs of 4 bits
	layout  layout
}

// The ways in which pixels are stored.
const (
	plain  = 0
	runs8  = 1
	runs4  = 2
	masked = 3
)

// read reads the header.
func (f *header) read(src []byte) error {
	*f = header{src: src}
	if len(src) < 18 || string(src[:2]) != "BM" {
		return fmt.Errorf("%w: no header", ErrBroken)
	}
	u32 := binary.LittleEndian.Uint32
	f.offset = int(u32(src[10:]))
	size := int(u32(src[14:]))
	if size < 4 || size > len(src)-14 {
		return fmt.Errorf("%w: a header of %d bytes", ErrTruncated, size)
	}
	b, bits, way, colors, entry := src[18:14+size], 0, plain, 0, 4
	switch size {
	case 12:
		f.w, f.h = int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))
		bits, entry = int(binary.LittleEndian.Uint16(b[6:])), 3
	case 40, 52, 56, 64, 108, 124:
		f.w, f.h = int(u32(b)), int(u32(b[4:]))
		if f.topDown = b[7] == 0xff; f.topDown {
			f.h = 1<<32 - f.h
		}
		bits, way, colors = int(binary.LittleEndian.Uint16(b[10:])), int(u32(b[12:])), int(u32(b[28:]))
	default:
		return fmt.Errorf("%w: a header of %d bytes", ErrUnsupported, size)
	}
	if f.w == 0 || f.h == 0 || f.w > 1<<31-1 || f.h > 1<<31-1 {
		return fmt.Errorf("%w: size %dx%d", ErrBroken, f.w, f.h)
	}
	return f.pixels(b, 14+size, bits, way, colors, entry)
}

// pixels reads how the pixels are stored: b is the header, at is where it ends, entry the size of a color of the palette.
func (f *header) pixels(b []byte, at, bits, way, colors, entry int) error {
	switch bits {
	case 1, 4, 8, 16, 24, 32:
	default:
		return fmt.Errorf("%w: %d bits", ErrUnsupported, bits)
	}
	if colors == 0 {
		colors = 1 << bits
	}
	if f.offset == 14+len(b)+4 && bits <= 8 { // of many writers who forget the palette
		f.offset += entry * colors
	}
	f.stride = (f.w*bits + 31) >> 3 &^ 3
	f.layout = layout{bits: bits, shifts: [3]int{16, 8, 0}, greens: 31}
	switch {
	case way == masked:
		var err error
		if at, err = f.masks(b, at); err != nil {
			return err
		}
	case way == runs8 || way == runs4:
		if bits > 8 {
			return fmt.Errorf("%w: runs of %d bits", ErrUnsupported, bits)
		}
		f.runs, f.four, f.stride = true, way == runs4, f.w
	case way != plain:
		return fmt.Errorf("%w: compression %d", ErrUnsupported, way)
	}
	if bits <= 8 {
		if colors > 1<<16 {
			return fmt.Errorf("%w: a palette of %d", ErrBroken, colors)
		}
		end := min(at+entry*colors, len(f.src))
		if err := f.palette(f.src[min(at, end):end], colors, entry); err != nil {
			return err
		}
		at = end
	}
	if f.offset == 0 {
		f.offset = at
	}
	return nil
}

// masks reads the masks, in the header or behind it.
func (f *header) masks(b []byte, at int) (int, error) {
	in := b
	if len(b) >= 48 {
		in = b[36:]
	} else {
		in = f.src[at:]
		at += 12
	}
	if len(in) < 12 {
		return 0, fmt.Errorf("%w in the masks", ErrTruncated)
	}
	var m [4]uint32
	for i := range 3 {
		m[i] = binary.LittleEndian.Uint32(in[4*i:])
	}
	if len(b) >= 52 {
		m[3] = binary.LittleEndian.Uint32(in[12:])
	}
	if !f.layout.mask(m) {
		return 0, fmt.Errorf("%w: masks %x of %d bits", ErrUnsupported, m, f.layout.bits)
	}
	return at, nil
}

// palette reads the colors. If they are nothing but the greys in order, Pillow takes the pixels for greys, and if they are
// black and white for bits, whatever their size. An entry that the end of the file leaves without its fourth byte may be a grey, but is no color.
func (f *header) palette(b []byte, colors, entry int) error {
	l := &f.layout
	greys := true
	for i := range colors {
		v := byte(i)
		if colors == 2 {
			v = byte(255 * i)
		}
		var c [3]byte
		if len(b) < entry*i+3 {
			greys = false
			break
		}
		c = [3]byte{b[entry*i+2], b[entry*i+1], b[entry*i]}
		greys = greys && c == [3]byte{v, v, v}
		if i < 256 && len(b) >= entry*(i+1) {
			l.palette[i] = c
		}
	}
	if !greys {
		if len(b)/entry > 256 {
			return fmt.Errorf("%w: a palette of %d", ErrBroken, len(b)/entry)
		}
		if f.runs {
			l.bits = 8
		}
		return nil
	}
	l.greys(colors)
	if f.runs {
		l.bits = 8
	}
	if (f.w*l.bits+7)/8 > f.stride {
		return fmt.Errorf("%w: rows of %d bytes are too short", ErrBroken, f.stride)
	}
	return nil
}
