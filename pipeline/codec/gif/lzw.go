package gif

import "fmt"

const (
	codeBits  = 12
	tableSize = 1 << codeBits
	// feed is how many bytes Pillow hands its decoder at a time.
	feed = 65536
)

// lzw decompresses a frame. A code's string is that of its prefix and one more pixel.
type lzw struct {
	prefix [tableSize]uint16
	last   [tableSize]byte
	length [tableSize]uint16
}

// decode fills dst from the blocks of src. bits is the size of a pixel. Empty blocks do not end the data. An end code does
// only if Pillow has handed all of the file to its decoder by then.
func (t *lzw) decode(dst, src []byte, bits int) error {
	reset, end := 1<<bits, 1<<bits+1
	r := bitReader{src: src}
	width, next, prev := bits+1, end+1, -1
	var first byte // of the string before
	fed := feed
	for n := 0; n < len(dst); {
		c, ok := r.code(width)
		switch {
		case !ok:
			return fmt.Errorf("%w: %d of %d pixels", ErrTruncated, n, len(dst))
		case c == reset:
			width, next, prev = bits+1, end+1, -1
			continue
		case c == end:
			if fed = max(fed, (r.blockEnd()+feed-1)/feed*feed); fed >= len(src) {
				return fmt.Errorf("%w: it ends after %d of %d pixels", ErrTruncated, n, len(dst))
			}
			fed += feed
			continue
		case prev < 0 && c > reset || c > next:
			return fmt.Errorf("%w: code %d of %d", ErrBroken, c, next)
		case prev < 0:
			dst[n], first, prev = byte(c), byte(c), c
			n++
			continue
		}
		old := prev
		prev = c
		if c == next { // the string before, and its first pixel again
			c = old
		}
		size := t.size(c, reset)
		if size == 0 || size >= tableSize+1 {
			return fmt.Errorf("%w: code %d", ErrBroken, c)
		}
		out := dst[n:min(n+size, len(dst))]
		repeat := first
		first = t.string(out, c, size, reset)
		n += len(out)
		if prev == next && n < len(dst) {
			dst[n] = repeat
			n++
		}
		if next < tableSize {
			t.prefix[next], t.last[next], t.length[next] = uint16(old), first, uint16(t.size(old, reset)+1)
			if next == 1<<width-1 && width < codeBits {
				width++
			}
			next++
		}
	}
	return nil
}

// size is the length of a code's string; 0: there is no such code.
func (t *lzw) size(c, reset int) int {
	if c < reset {
		return 1
	}
	if c >= tableSize || c < reset+2 {
		return 0
	}
	return int(t.length[c])
}

// string writes as much of a code's string as out has room for and returns the first pixel.
func (t *lzw) string(out []byte, c, size, reset int) byte {
	for ; c >= reset; c = int(t.prefix[c]) {
		if size--; size < len(out) {
			out[size] = t.last[c]
		}
	}
	out[0] = byte(c)
	return byte(c)
}

// bitReader takes codes out of blocks. A block that is not all there is not read.
type bitReader struct {
	src  []byte
	at   int
	left int // of the block
	acc  uint32
	n    int
}

// blockEnd is where the block ends.
func (r *bitReader) blockEnd() int { return r.at + r.left }

func (r *bitReader) code(width int) (c int, ok bool) {
	for r.n < width {
		for r.left == 0 {
			if r.at >= len(r.src) || r.at+1+int(r.src[r.at]) > len(r.src) {
				return 0, false
			}
			r.left = int(r.src[r.at])
			r.at++
		}
		r.acc |= uint32(r.src[r.at]) << r.n
		r.at++
		r.left--
		r.n += 8
	}
	c = int(r.acc & (1<<width - 1))
	r.acc >>= width
	r.n -= width
	return c, true
}
