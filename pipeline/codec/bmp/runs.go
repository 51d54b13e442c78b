package bmp

import "fmt"

// expandRuns makes a byte for each pixel of a file of run lengths, in o's memory. As in Pillow, skipped pixels are 0; a run of
// one value ends at the end of its row, a run of values does not.
func (f *header) expandRuns(o []byte) ([]byte, error) {
	src, at, total := f.src, f.offset, f.w*f.h
	if cap(o) < total {
		o = make([]byte, 0, min(total, 64*max(0, len(src)-at)))
	}
	x := 0
	for len(o) < total && at+2 <= len(src) {
		n, v := int(src[at]), src[at+1]
		at += 2
		switch {
		case n > 0:
			n = max(0, min(n, f.w-x))
			o = f.same(o, v, n)
			x += n
		case v == 0:
			if rest := len(o) % f.w; rest > 0 {
				o = append(o, make([]byte, f.w-rest)...)
			}
			x = 0
		case v == 1:
			return o, f.enough(o)
		case v == 2:
			if at+2 > len(src) {
				return o, f.enough(o)
			}
			o = append(o, make([]byte, min(total-len(o), int(src[at])+int(src[at+1])*f.w))...)
			at += 2
			x = len(o) % f.w
		default:
			var whole bool
			n = min(total-len(o), int(v))
			if o, at, whole = f.values(o, at, n); !whole || len(o) == total {
				return o, f.enough(o)
			}
			x += int(v)
			at += at & 1 // to an even place in the file
		}
	}
	return o, f.enough(o)
}

// same appends n pixels of v, which with 4 bits holds two values that take turns.
func (f *header) same(o []byte, v byte, n int) []byte {
	for i := range n {
		switch {
		case !f.four:
			o = append(o, v)
		case i&1 == 0:
			o = append(o, v>>4)
		default:
			o = append(o, v&15)
		}
	}
	return o
}

// values appends n pixels that stand at, and returns where they end. whole is false if the file ends first.
func (f *header) values(o []byte, at, n int) (_ []byte, end int, whole bool) {
	bytes := n
	if f.four {
		bytes = (n + 1) / 2
	}
	end = min(at+bytes, len(f.src))
	if !f.four {
		return append(o, f.src[at:end]...), end, end == at+bytes
	}
	for i, v := range f.src[at:end] {
		if o = append(o, v>>4); 2*i+1 < n {
			o = append(o, v&15)
		}
	}
	return o, end, end == at+bytes
}

func (f *header) enough(o []byte) error {
	if len(o) < f.w*f.h {
		return fmt.Errorf("%w: %d of %d pixels", ErrTruncated, len(o), f.w*f.h)
	}
	return nil
}
