package webp

import (
	"encoding/binary"
	"fmt"
	"image"
)

// container is what the chunks of a file say. It accepts what libwebp accepts, which reads all of an animation's frames before
// it shows the first.
type container struct {
	walk
	canvas   image.Point
	flags    byte
	first    frame
	frames   int // of an animation, or 1
	animated bool
	colored  bool // the animation's header was there
}

// frame is one picture. at is its place on the canvas.
type frame struct {
	at       image.Point
	size     image.Point
	lossless bool
	data     []byte // of the picture's chunk, with its padding
	alpha    []byte // of a lossy picture, nil: none
	glass    bool   // a chunk of transparency was there
	late     bool   // and it was behind the picture
	there    bool   // a chunk of a picture was there
}

// Bits of the extended header.
const (
	hasAnimation = 1 << 1
	hasAlpha     = 1 << 4
	knownFlags   = 0x3e
)

// walk goes over the chunks of a file.
type walk struct {
	src []byte
	at  int
}

func (w *walk) left() int { return len(w.src) - w.at }

// peek returns the next chunk's name and payload without the padding, which must be there too.
func (w *walk) peek() (name string, payload []byte, err error) {
	if w.left() < 8 {
		return "", nil, fmt.Errorf("%w at byte %d", ErrTruncated, w.at)
	}
	name = nameOf(w.src[w.at : w.at+4])
	n := int(binary.LittleEndian.Uint32(w.src[w.at+4:]))
	if n+n&1 > w.left()-8 {
		return "", nil, fmt.Errorf("%w: %q has %d bytes, %d are there", ErrTruncated, name, n, w.left()-8)
	}
	return name, w.src[w.at+8 : w.at+8+n], nil
}

// names are those of chunks that pictures have.
var names = [...]string{"VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "ANMF", "ICCP", "EXIF", "XMP "}

// nameOf is a chunk's name; one of those known takes no memory.
func nameOf(b []byte) string {
	for _, name := range names {
		if name == string(b) {
			return name
		}
	}
	return string(b)
}

// skip goes behind the chunk of that payload.
func (w *walk) skip(payload []byte) { w.at += 8 + len(payload) + len(payload)&1 }

func u24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// read reads a whole file.
func (c *container) read(src []byte) error {
	*c = container{}
	if len(src) < 20 || string(src[:4]) != "RIFF" || string(src[8:12]) != "WEBP" {
		return fmt.Errorf("%w: no header", ErrBroken)
	}
	size := int(binary.LittleEndian.Uint32(src[4:]))
	if size < 12 || size+8 > len(src) {
		return fmt.Errorf("%w: the header says %d bytes, the file has %d", ErrTruncated, size+8, len(src))
	}
	c.walk = walk{src[:size+8], 12}
	name, payload, err := c.peek()
	if err != nil {
		return err
	}
	switch name {
	case "VP8 ", "VP8L":
		return c.simple()
	case "VP8X":
		if len(payload) != 10 {
			return fmt.Errorf("%w: VP8X of %d bytes", ErrBroken, len(payload))
		}
		c.skip(payload)
		return c.extended(payload)
	}
	return fmt.Errorf("%w: it begins with %q", ErrBroken, name)
}

// What a file may have of pixels without loss, which need not take a bit each: as many whatever its size, and more for each byte, about
// what deflate makes of one at best.
const (
	freePixels    = 1 << 24
	pixelsPerByte = 1024
)

// checkWork refuses a small file whose lossless picture, or transparency, would keep a core for seconds.
func (c *container) checkWork() error {
	f := &c.first
	if !f.lossless && (len(f.alpha) == 0 || f.alpha[0]&3 == 0) {
		return nil
	}
	if n, most := f.size.X*f.size.Y, freePixels+pixelsPerByte*len(c.src); n > most {
		return fmt.Errorf("%w: %d pixels without loss, at most %d are decoded of %d bytes", ErrLimit, n, most, len(c.src))
	}
	return nil
}

// simple reads a file that is one picture.
func (c *container) simple() error {
	f, err := c.frame(0)
	if err != nil {
		return err
	}
	c.canvas, c.first = f.size, f
	return nil
}

// extended reads a file with a header of its own.
func (c *container) extended(header []byte) error {
	c.flags = header[0]
	c.animated = c.flags&hasAnimation != 0
	c.canvas = image.Pt(1+u24(header[4:]), 1+u24(header[7:]))
	if int64(c.canvas.X)*int64(c.canvas.Y) >= 1<<32 {
		return fmt.Errorf("%w: size %v", ErrBroken, c.canvas)
	}
	for first := true; first || c.left() > 0; first = false {
		if err := c.chunk(); err != nil {
			return err
		}
	}
	if !c.first.there || c.flags&^knownFlags != 0 {
		return fmt.Errorf("%w: %d frames, flags %#x", ErrBroken, c.frames, c.flags)
	}
	return nil
}

// chunk reads a chunk behind the extended header.
func (c *container) chunk() error {
	name, payload, err := c.peek()
	if err != nil {
		return err
	}
	switch name {
	case "VP8X":
		return fmt.Errorf("%w: a second VP8X", ErrBroken)
	case "ALPH", "VP8 ", "VP8L":
		if c.colored || c.animated || c.frames > 0 {
			return fmt.Errorf("%w: a picture beside the frames", ErrBroken)
		}
		f, err := c.frame(0)
		if err != nil {
			return err
		}
		return c.add(f)
	case "ANIM":
		if len(payload)+len(payload)&1 < 6 {
			return fmt.Errorf("%w: ANIM of %d bytes", ErrBroken, len(payload))
		}
		c.colored = true
	case "ANMF":
		return c.anmf(payload)
	}
	c.skip(payload)
	return nil
}

// anmf reads a frame of an animation. What follows the frame's picture within the chunk is read as chunks of the file.
func (c *container) anmf(payload []byte) error {
	if !c.colored || len(payload)+len(payload)&1 < 16 {
		return fmt.Errorf("%w: ANMF of %d bytes", ErrBroken, len(payload))
	}
	at := image.Pt(2*u24(payload), 2*u24(payload[3:]))
	if w, h := 1+u24(payload[6:]), 1+u24(payload[9:]); int64(w)*int64(h) >= 1<<32 {
		return fmt.Errorf("%w: a frame of %dx%d", ErrBroken, w, h)
	}
	c.at += 8 + 16
	begin, room := c.at, len(payload)+len(payload)&1-16
	f, err := c.frame(room)
	switch {
	case err != nil:
		return err
	case c.at-begin > room:
		return fmt.Errorf("%w: a frame beyond its chunk", ErrBroken)
	case !c.animated || !f.there && !f.glass:
		return nil
	}
	f.at = at
	return c.add(f)
}

// add checks a frame against the canvas.
func (c *container) add(f frame) error {
	exact := !c.animated
	place := image.Rectangle{Max: f.size}.Add(f.at)
	canvas := image.Rectangle{Max: c.canvas}
	switch {
	case !f.there:
		return fmt.Errorf("%w: a frame without a picture", ErrBroken)
	case exact && place != canvas, !place.In(canvas):
		return fmt.Errorf("%w: a picture at %v on a canvas of %v", ErrBroken, place, c.canvas)
	}
	if c.frames == 0 {
		c.first = f
	}
	c.frames++
	return nil
}

// frame reads the chunks that make a picture: transparency, and the picture itself. least is how many bytes must be there.
func (c *container) frame(least int) (f frame, err error) {
	if c.left() < max(least, 8) {
		return f, fmt.Errorf("%w: no picture at byte %d", ErrTruncated, c.at)
	}
	var alpha []byte
	for {
		name, payload, err := c.peek()
		switch {
		case err != nil:
			return f, err
		case name == "ALPH" && !f.glass:
			f.glass, f.late, alpha = true, f.there, payload
		case name == "VP8L" && f.glass:
			return f, fmt.Errorf("%w: transparency beside a lossless picture", ErrBroken)
		case (name == "VP8 " || name == "VP8L") && !f.there:
			if err := f.picture(name == "VP8L", payload); err != nil {
				return f, err
			}
		default:
			return f.with(alpha, c)
		}
		if c.skip(payload); c.left() == 0 {
			return f.with(alpha, c)
		}
	}
}

// with adds the transparency if it counts. Only then its place matters.
func (f frame) with(alpha []byte, c *container) (frame, error) {
	if !c.animated && c.flags&hasAlpha == 0 {
		return f, nil
	}
	if f.late {
		return f, fmt.Errorf("%w: transparency behind its picture", ErrBroken)
	}
	f.alpha = alpha
	return f, nil
}

// picture reads the header of a picture. To libwebp its data has the byte of padding too.
func (f *frame) picture(lossless bool, b []byte) error {
	f.there, f.lossless, f.data = true, lossless, b[:len(b)+len(b)&1]
	if lossless {
		if len(b) < 5 || b[0] != 0x2f || b[4]>>5 != 0 {
			return fmt.Errorf("%w: header of a lossless picture", ErrBroken)
		}
		v := int(binary.LittleEndian.Uint32(b[1:]))
		f.size = image.Pt(1+v&0x3fff, 1+v>>14&0x3fff)
		return nil
	}
	if len(b) < 10 || string(b[3:6]) != "\x9d\x01\x2a" {
		return fmt.Errorf("%w: header of a lossy picture", ErrBroken)
	}
	inter, profile, shown, first := b[0]&1 != 0, b[0]>>1&7, b[0]>>4&1 != 0, u24(b)>>5
	f.size = image.Pt(int(binary.LittleEndian.Uint16(b[6:]))&0x3fff, int(binary.LittleEndian.Uint16(b[8:]))&0x3fff)
	if inter || profile > 3 || !shown || first >= len(b) || f.size.X == 0 || f.size.Y == 0 {
		return fmt.Errorf("%w: header of a lossy picture", ErrBroken)
	}
	return nil
}
