package jpeg

import "bytes"

// The tables' look-ups take this many bits: AC codes up to acBits, or fewBits, several symbols at once where they fit; DC codes up to dcBits. A table
// of fewBits takes half the time to make and half the memory of the first cache. Where one lane is read, and passed over, that is worth more than the
// symbols that do not fit; where two lanes are read in turns it is not.
const (
	acBits  = 11
	fewBits = 10
	dcBits  = 9
)

// endOfBlock is how far a block's position moves on where the block ends: beyond what any runs of one look-up can reach.
const endOfBlock = 128

// An entry tells what the bits at hand start with: bits 0-7 the length of code and value, 8-15 of the code alone, 16-23
// 63 less the length of the value, 24-31 how far the position in the block moves. 0: the code is longer than the look-up.
type entry uint32

// A pair is up to two symbols with their values. Of the last one, which may be the first, the look-up holds the code and the value's first bit; the
// value is what its bits say and a bias. Of first bits 0-7 are pairShift less the length of both, 8-15 the length of the last one's value, 16-23 the
// move of both, 24-31 the length of both; of second bits 0-7 are the second one's move, negative, 8-15 the first one's value if there is a second
// one, 16-31 the bias. Where there is not even one symbol, first is 0 and second the entry.
type pair struct{ first, second uint32 }

type dcTable struct {
	entries [1 << dcBits]entry
	long    longCodes
}

// A triple is up to three symbols to pass over. The value of the last one need not fit into the look-up. Bits 0-7 are tripleShift less the length
// of all, 8-15 the length, 16-23 the move. 0: not even the first code fits.
type triple uint32

// pairLength is the most bits that a pair takes: two can be read between one refill and the next.
const pairLength = 22

// acTable uses the first 1<<width of its pairs, entries and triples.
type acTable struct {
	pairs      [1 << acBits]pair
	entries    [1 << acBits]entry
	triples    [1 << acBits]triple // if hasTriples
	place      [256]uint8          // a copy of place, for the assembly
	long       longCodes
	hasTriples bool
	width      int // acBits or fewBits
}

// Shifts that leave the first of 64 bits that a look-up takes, as the offset of a pair and of a triple.
func (t *acTable) pairShift() uint32   { return uint32(61 - t.width) }
func (t *acTable) tripleShift() uint32 { return uint32(62 - t.width) }

// longCodes finds a code of any length.
type longCodes struct {
	last   [17]int32 // the last code of each length, -1: none
	offset [17]int32 // from code to index of its symbol
	def    [16 + 256]byte
	size   int  // of def
	missed bool // a code was looked for that the table does not have
}

func (d definition) symbols() (n int) {
	for _, c := range d[:16] {
		n += int(c)
	}
	return n
}

// valid reports whether the definition is a prefix code without the code of all ones, and its symbols at most limit.
func (d definition) valid(limit byte) bool {
	code := 0
	for i, n := range d[:16] {
		code += int(n)
		if n > 0 && code >= 2<<i {
			return false
		}
		code <<= 1
	}
	for _, s := range d[16:] {
		if s > limit {
			return false
		}
	}
	return true
}

// kind is what the symbols of a table mean.
type kind int

const (
	kindDC     kind = iota // the size of a difference
	kindAC                 // a run of zeros in the high half, the size of a value in the low one
	kindBand               // the same of a progressive file: without a value, the size of a count of blocks that end
	kindRefine             // the same of a scan that refines: a value is a sign, whatever the size
)

// makeEntry describes a code of l bits for a symbol.
func makeEntry(l, symbol int, k kind) entry {
	size, move := symbol, 1
	if k != kindDC {
		size, move = symbol&15, symbol>>4+1
		if size == 0 && move != 16 {
			if k != kindAC {
				size = symbol >> 4
			}
			move = endOfBlock
		} else if k == kindRefine {
			size = min(size, 1)
		}
	}
	return entry(l + size | l<<8 | (63-size)<<16 | move<<24)
}

// value takes the value that follows the code of e at the top of acc.
func value(acc uint64, e entry) int32 {
	x := acc << (e >> 8 & 63)
	negative := ^uint64(int64(x) >> 63)
	m := ((x ^ negative) >> 1) >> (e >> 16 & 63)
	return int32((m ^ negative) - negative)
}

// build fills entries, of 2^bits, and c from a valid definition. It reports whether that is another one than before: many encoders write
// the same into all files.
func (c *longCodes) build(d definition, entries []entry, bits int, of kind) bool {
	c.missed = false
	if bytes.Equal(c.def[:c.size], d) {
		return false
	}
	c.size = copy(c.def[:], d)
	symbols := d[16:]
	code, k, at := 0, 0, 0
	for l := 1; l <= 16; l++ {
		c.offset[l] = int32(k - code)
		c.last[l] = -1
		n := int(d[l-1])
		if n > 0 {
			c.last[l] = int32(code + n - 1)
		}
		if l <= bits {
			for _, s := range symbols[k : k+n] {
				e := makeEntry(l, int(s), of)
				run := entries[at : at+1<<(bits-l)]
				for i := range run {
					run[i] = e
				}
				at += len(run)
			}
		}
		k += n
		code = (code + n) << 1
	}
	clear(entries[at:])
	return true
}

func (t *dcTable) build(d definition) { t.long.build(d, t.entries[:], dcBits, kindDC) }

func (t *acTable) build(d definition, width int, vector bool) {
	if t.width != width {
		t.width, t.long.size = width, 0 // other entries for the same definition
	}
	if !t.long.build(d, t.entries[:1<<width], width, kindAC) {
		return
	}
	t.place, t.hasTriples = place, false
	if vector {
		t.setVector()
		return
	}
	t.setPairs()
}

// ready sets triples, unless they are set. They are made where they are needed, since not all that is read is also passed over.
func (t *acTable) ready(vector bool) {
	switch {
	case t.hasTriples:
		return
	case vector:
		t.setTriplesVector()
	default:
		t.setTriples()
	}
	t.hasTriples = true
}

// The loops below have no branches, since nothing could foresee them.

// setPairs sets all pairs.
func (t *acTable) setPairs() {
	bits, shift := uint32(t.width), t.pairShift()
	for i, e := range t.entries[:1<<t.width] {
		l, move := uint32(e&255), uint32(e>>24)
		rest := i << (l & 31) & (1<<bits - 1)
		next := t.entries[rest]
		size, known, bias := e.last(i, bits)
		size2, known2, bias2 := next.last(rest, bits)
		n, more, v := uint32(next&255), uint32(next>>24), uint32(value(uint64(i)<<(64-bits), e)) //nolint:gosec // i counts up
		one := ^uint32(int32((l-1)|(bits-known)|(pairLength-l)) >> 31)
		two := ^uint32(int32((n-1)|(bits-l-known2)|(pairLength-l-n)|(endOfBlock-1-move)|(7-size))>>31) & one
		l, move = l+n&two, move+more&two
		first := shift - l | (size^(size^size2)&two)<<8 | move<<16 | l<<24
		second := -(more&two)&255 | v&two&255<<8 | (bias^(bias^bias2)&two)<<16
		t.pairs[i] = pair{first & one, uint32(e) ^ (uint32(e)^second)&one}
	}
}

// last is what a pair has of its last symbol, if the bits of a look-up are i: the size of its value, how many of the bits the look-up must have of it,
// and the bias of the value.
func (e entry) last(i int, bits uint32) (size, known, bias uint32) {
	code := uint32(e >> 8 & 255)
	size = 63 - uint32(e>>16&255)
	negative := ^uint32(int32(uint32(i)<<(32-bits)<<(code&31)) >> 31) //nolint:gosec // it counts up
	return size, code + min(size, 1), (1 - 1<<(size&31)) & negative
}

// setTriples sets all triples: to one symbol, to which up to two more are added while their codes fit and the block goes on.
func (t *acTable) setTriples() {
	bits, shift := uint32(t.width), t.tripleShift()
	for i, e := range t.entries[:1<<t.width] {
		l, move := uint32(e&255), uint32(e>>24)
		for range 2 {
			e := t.entries[i<<(l&31)&(1<<bits-1)]
			code := uint32(e >> 8 & 255)
			fits := ^uint32(int32((code-1)|(bits-l-code)|(endOfBlock-1-move)) >> 31)
			l += uint32(e) & 255 & fits
			move += uint32(e) >> 24 & fits
		}
		some := ^uint32(int32(l-1) >> 31)
		t.triples[i] = triple((shift - l | l<<8 | move<<16) & some)
	}
}

// find looks up a code longer than bits at the top of acc. A code that the table does not have counts as 17 bits for
// symbol 0, as in libjpeg.
//
//go:noinline
func (c *longCodes) find(acc uint64, bits int, of kind) entry {
	for l := bits + 1; l <= 16; l++ {
		if code := int32(acc >> (64 - l)); code <= c.last[l] {
			return makeEntry(l, int(c.def[16+int(uint8(code+c.offset[l]))]), of)
		}
	}
	c.missed = true
	return makeEntry(17, 0, of)
}
