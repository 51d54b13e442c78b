package vp8l

import "encoding/binary"

// tail reads the last symbol of transparency's indexes as libwebp does, whose word of 64 bits is loaded no further where data end. Behind the end there
// are no zeros then: reading goes on with the lowest bits of that word, and once a read found that the data are over it begins there again and reads
// zeros as numbers. What is made of it goes unused; but a distance that leads out of the picture is an error, and another one is not.
type tail struct {
	data  []byte
	at    int // the next bit
	ended bool
}

// mostBits is the most that a symbol takes, with a length and a distance.
const mostBits = 2*maxBits + 10 + 18

// isTail reports whether a symbol may take more bits than there are.
func (r *bitReader) isTail() bool { return r.place()+mostBits > r.end() }

// tail begins where r is.
func (r *bitReader) tail() tail { return tail{data: r.data, at: r.place()} }

// leave has r go on where t is, with zeros if the data have ended.
func (r *bitReader) leave(t *tail) {
	if t.ended {
		t.at = r.end() + 1
	}
	r.seek(t.at)
}

// word is where libwebp's last word begins, and that word.
func (t *tail) word() (from int, v uint64) {
	n := len(t.data)
	if n >= 8 {
		return 8*n - 64, binary.LittleEndian.Uint64(t.data[n-8:])
	}
	for i, b := range t.data {
		v |= uint64(b) << (8 * i)
	}
	return 0, v
}

// peek is the next bits from a place on.
func (t *tail) peek(at int) uint64 {
	from, v := t.word()
	return v >> ((at - from) & 63)
}

// symbol reads a symbol: bits of its first table, and those of the further one from there on.
func (t *tail) symbol(table []entry) int {
	r := bitReader{acc: t.peek(t.at)&(1<<rootBits-1) | t.peek(t.at+rootBits)<<rootBits, bits: 64}
	v := r.symbol(table)
	t.at += 64 - r.bits
	return v
}

// look begins with the last word again where the data are over.
func (t *tail) look() {
	from, _ := t.word()
	if t.ended || t.at > from+64 {
		t.at, t.ended = from, true
	}
}

// readFar is bitReader.readFar.
func (t *tail) readFar(symbol int) int {
	if symbol < 4 {
		return symbol
	}
	n := (symbol - 2) >> 1
	v := 0
	if !t.ended {
		v = int(t.peek(t.at) & (1<<n - 1))
		t.at += n
	}
	t.look()
	return (2+symbol&1)<<n + v
}

// readLast is readSymbol where data may end, of a picture without a cache.
func (s *stream) readLast(p *picture, pix []uint32, i int, g *group) int {
	t := s.bits.tail()
	defer s.bits.leave(&t)
	symbol := t.symbol(g.tables[green])
	if symbol < literals {
		pix[i] = g.rest | uint32(symbol)<<8
		return 1
	}
	n := 1 + t.readFar(symbol-literals)
	far := t.symbol(g.tables[distance])
	t.look()
	return copyWithin(pix, i, n, 1+t.readFar(far), p.w)
}
