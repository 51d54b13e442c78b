package png

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
)

// Signature is what a PNG file begins with.
const Signature = "\x89PNG\r\n\x1a\n"

// reader walks the chunks as Pillow does: in front of the data checksums must be right, behind it nobody looks at them; unknown
// chunks are skipped; a chunk must be whole wherever it stands.
type reader struct {
	src         []byte
	w, h        int
	depth       int
	color       byte
	known       bool // depth and color are a kind of PNG
	interlaced  bool
	palette     []byte // entries of 3 bytes; nil: none
	transparent bool   // of a palette, one entry alone is transparent
	box         image.Rectangle
	framed      bool // box was set by a frame header
	frames      uint32
	animated    bool // there is a frame count
	indices     bool // a palette's indices are wanted, not its colours
	sequence    int64
	data        int                            // where the first data chunk begins
	use         func(name string, data []byte) // told of the chunks; may be nil
}

// chunk is a piece of the file; its payload may reach beyond the end.
type chunk struct {
	name []byte
	at   int
	size int
}

func (c *chunk) end() int { return c.at + c.size + 4 }

// errEnd says that no chunk stands where one should.
var errEnd = errors.New("the chunks end")

// chunk returns the chunk that begins at.
func (r *reader) chunk(at int) (c chunk, err error) {
	if at+8 > len(r.src) {
		return c, errEnd
	}
	c = chunk{r.src[at+4 : at+8], at + 8, int(binary.BigEndian.Uint32(r.src[at:]))}
	for _, b := range c.name {
		if (b|0x20) < 'a' || (b|0x20) > 'z' {
			if b < '0' || b > '9' && b != '_' {
				return c, fmt.Errorf("%w: %q is no name of a chunk", errEnd, c.name)
			}
		}
	}
	return c, nil
}

// payload returns what the chunk holds.
func (r *reader) payload(c *chunk) ([]byte, error) {
	if c.size > len(r.src)-c.at {
		return nil, fmt.Errorf("%w: the chunk %s has %d bytes, %d are there", ErrTruncated, c.name, c.size, len(r.src)-c.at)
	}
	return r.src[c.at : c.at+c.size], nil
}

// header reads up to the data.
func (r *reader) header(src []byte) error {
	*r = reader{src: src, sequence: -1, use: r.use}
	if !bytes.HasPrefix(src, []byte(Signature)) {
		return fmt.Errorf("%w: no signature", ErrBroken)
	}
	at := len(Signature)
	for {
		c, err := r.chunk(at)
		if err != nil {
			return fmt.Errorf("%w at byte %d, before any data: %w", ErrTruncated, at, err)
		}
		if string(c.name) == "IDAT" {
			r.data = at
			return r.settle()
		}
		if string(c.name) == "IEND" {
			return fmt.Errorf("%w: no data", ErrBroken)
		}
		if err := r.take(&c); err != nil {
			return err
		}
		if err := r.checksum(&c); err != nil {
			return err
		}
		at = c.end()
	}
}

func (r *reader) checksum(c *chunk) error {
	if c.end() > len(r.src) {
		return fmt.Errorf("%w in the checksum of %s", ErrTruncated, c.name)
	}
	end := c.at + c.size
	if crc32.ChecksumIEEE(r.src[c.at-4:end]) != binary.BigEndian.Uint32(r.src[end:]) {
		return fmt.Errorf("%w: checksum of %s", ErrBroken, c.name)
	}
	return nil
}

// settle checks what the header as a whole says.
func (r *reader) settle() error {
	switch {
	case !r.known:
		return fmt.Errorf("%w: color type %d of %d bits", ErrBroken, r.color, r.depth)
	case r.w == 0 || r.h == 0 || r.w > 1<<31-1 || r.h > 1<<31-1:
		return fmt.Errorf("%w: size %dx%d", ErrBroken, r.w, r.h)
	case len(r.palette)/3 > 256 || r.palette != nil && r.color != indexed:
		return fmt.Errorf("%w: a palette of %d entries", ErrBroken, len(r.palette)/3)
	case r.palette == nil && r.transparent:
		return fmt.Errorf("%w: a transparent color of no palette", ErrBroken)
	}
	canvas := image.Rect(0, 0, r.w, r.h)
	if !r.framed {
		r.box = canvas
	}
	if r.box.Empty() || !r.box.In(canvas) {
		return fmt.Errorf("%w: a frame at %v", ErrBroken, r.box)
	}
	if r.interlaced {
		r.box = r.box.Sub(r.box.Min) // Pillow forgets where the frame stands
	}
	return nil
}

// rest walks the chunks from at, behind the data, to the end.
func (r *reader) rest(at int) error {
	several := r.animated && (r.frames > 1 || !r.framed)
	for {
		c, err := r.chunk(at)
		if errors.Is(err, errEnd) || string(c.name) == "IEND" || several && string(c.name) == "fcTL" {
			return nil // a missing end is no damage
		}
		if err := r.take(&c); err != nil {
			return err
		}
		at = c.end()
	}
}

// Chunks calls use with each chunk that Pillow reads of a file, but for those of pixels, in order, and ends where it finds damage. Use must not
// change data.
func Chunks(src []byte, use func(name string, data []byte)) {
	r := reader{use: use}
	if r.header(src) != nil {
		return
	}
	at := r.data
	for {
		c, err := r.chunk(at)
		if err != nil || string(c.name) != "IDAT" && string(c.name) != "DDAT" {
			break
		}
		at = c.end()
	}
	_ = r.rest(at) // damage ends it
}

// take reads one chunk.
func (r *reader) take(c *chunk) error {
	b, err := r.payload(c)
	if err != nil {
		return err
	}
	if r.use != nil {
		r.use(string(c.name), b)
	}
	short := func(least int) error {
		if len(b) < least {
			return fmt.Errorf("%w: %s of %d bytes", ErrBroken, c.name, len(b))
		}
		return nil
	}
	switch string(c.name) {
	case "IHDR":
		return r.ihdr(b)
	case "PLTE":
		if r.known && r.color == indexed {
			r.palette = b
		}
	case "tRNS":
		return r.trns(b)
	case "gAMA":
		return short(4)
	case "cHRM":
		return short(32)
	case "sRGB":
		return short(1)
	case "pHYs":
		return short(9)
	case "iCCP":
		method := b[bytes.IndexByte(b, 0)+1:]
		if len(method) == 0 || method[0] != 0 {
			return fmt.Errorf("%w: compression of iCCP", ErrBroken)
		}
	case "zTXt":
		if _, v, _ := bytes.Cut(b, []byte{0}); len(v) > 0 && v[0] != 0 {
			return fmt.Errorf("%w: compression of zTXt", ErrBroken)
		}
	case "acTL":
		if err := short(8); err != nil {
			return err
		}
		r.actl(b)
	case "fcTL":
		if err := short(26); err != nil {
			return err
		}
		return r.fctl(b)
	case "fdAT":
		if err := short(4); err != nil {
			return err
		}
		return r.count(binary.BigEndian.Uint32(b), false)
	}
	return nil
}

func (r *reader) ihdr(b []byte) error {
	if len(b) < 13 {
		return fmt.Errorf("%w: IHDR of %d bytes", ErrBroken, len(b))
	}
	r.w, r.h = int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:]))
	if depth, color := int(b[8]), b[9]; kind(depth, color) {
		r.depth, r.color, r.known = depth, color, true
	} else if !r.known {
		r.depth, r.color = depth, color
	}
	r.interlaced = r.interlaced || b[12] != 0
	if b[11] != 0 {
		return fmt.Errorf("%w: filter method %d", ErrBroken, b[11])
	}
	return nil
}

// trns reads the transparency for what is wrong with it; the pixels are the same without.
func (r *reader) trns(b []byte) error {
	least := 0
	switch {
	case !r.known:
	case r.color == indexed:
		b = bytes.TrimSuffix(b, []byte("\n")) // the dollar of Pillow's regular expression takes it
		r.transparent = bytes.Count(b, []byte{0}) == 1 && bytes.Count(b, []byte{255}) == len(b)-1
	case r.color == grey:
		least = 2
	case r.color == rgb:
		least = 6
	}
	if len(b) < least {
		return fmt.Errorf("%w: tRNS of %d bytes", ErrBroken, len(b))
	}
	return nil
}

// actl reads the animation's header. A second one ends the animation, as if there were none.
func (r *reader) actl(b []byte) {
	n := binary.BigEndian.Uint32(b)
	switch {
	case r.animated:
		r.animated = false
	case n > 0 && n <= 1<<31:
		r.animated, r.frames = true, n
	}
}

// fctl reads a frame's header.
func (r *reader) fctl(b []byte) error {
	var v [5]int
	for i := range v {
		v[i] = int(binary.BigEndian.Uint32(b[4*i:]))
	}
	if err := r.count(uint32(v[0]), true); err != nil {
		return err
	}
	w, h, x, y := v[1], v[2], v[3], v[4]
	if x+w > r.w || y+h > r.h {
		return fmt.Errorf("%w: a frame beyond the picture", ErrBroken)
	}
	if r.data == 0 {
		r.box, r.framed = image.Rectangle{Min: image.Pt(x, y), Max: image.Pt(x+w, y+h)}, true
	}
	return nil
}

// count checks the number of a piece of animation.
func (r *reader) count(n uint32, first bool) error {
	if int64(n) != r.sequence+1 || n == 0 && !first {
		return fmt.Errorf("%w: piece %d of the animation comes after %d", ErrBroken, n, r.sequence)
	}
	r.sequence = int64(n)
	return nil
}
