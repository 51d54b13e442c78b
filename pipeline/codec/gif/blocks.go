package gif

import "fmt"

// blocks reads a file piece by piece; at its end pieces are short.
type blocks struct {
	src []byte
	at  int
}

func (b *blocks) take(n int) []byte {
	end := min(b.at+n, len(b.src))
	p := b.src[b.at:end]
	b.at = end
	return p
}

// palette takes the palette that flags announce.
func (b *blocks) palette(flags byte) []byte { return b.take(3 << (flags&7 + 1)) }

// data takes a block of data; more is false at the block that ends a run of them, and at the end of the file.
func (b *blocks) data() (block []byte, more bool) {
	n := b.take(1)
	if len(n) == 0 || n[0] == 0 {
		return nil, false
	}
	return b.take(int(n[0])), true
}

// skip takes the rest of a run of blocks.
func (b *blocks) skip() {
	for {
		if block, _ := b.data(); len(block) == 0 {
			return
		}
	}
}

// toFrame goes to the head of the first frame. It returns the transparent color, -1 for none. Bytes that begin no block are
// skipped.
func (b *blocks) toFrame() (transparent int, err error) {
	transparent = -1
	for {
		mark := b.take(1)
		switch {
		case len(mark) == 0 || mark[0] == ';':
			return 0, fmt.Errorf("%w: no frame", ErrTruncated)
		case mark[0] == ',':
			return transparent, nil
		case mark[0] == '!':
			if err := b.extension(&transparent); err != nil {
				return 0, err
			}
		}
	}
}

// extension reads a block that is no frame.
func (b *blocks) extension(transparent *int) error {
	const control, comment, application = 0xf9, 0xfe, 0xff
	kind := b.take(1)
	if len(kind) == 0 {
		return fmt.Errorf("%w in an extension", ErrTruncated)
	}
	block, more := b.data()
	switch {
	case kind[0] == control && more:
		if len(block) < 3 || block[0]&1 != 0 && len(block) < 4 {
			return fmt.Errorf("%w: a control block of %d bytes", ErrBroken, len(block))
		}
		if block[0]&1 != 0 {
			*transparent = int(block[3])
		}
	case kind[0] == comment:
		if len(block) > 0 {
			b.skip()
		}
		return nil
	case kind[0] == application && len(block) >= 11 && string(block[:11]) == "NETSCAPE2.0":
		_, _ = b.data()
	}
	b.skip() // Pillow goes on to skip even behind an empty run
	return nil
}
