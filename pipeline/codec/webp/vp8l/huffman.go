package vp8l

import "github.com/feedwater-io/feedwater/pipeline/codec/internal/prefix"

const (
	rootBits    = 8
	lengthsBits = 7
	maxBits     = prefix.MaxBits
)

// entry says what the next bits mean: the symbol in the upper half, the bits that it takes in the lower one. Where these are more than
// root bits the symbol is how far behind the table's beginning the further table begins.
type entry uint32

func (e entry) bits() int   { return int(e & 0xff) }
func (e entry) symbol() int { return int(e >> 16) }

// tables makes tables of codes. It keeps its memory.
type tables struct {
	entries []entry
	sorted  [maxAlphabet]uint16
}

// add appends the table of a canonical code: 1<<root entries, and the further ones behind them. It reports whether there is such a
// code: of one symbol, which takes no bits then, or a complete one. Where store is not set it appends nothing.
func (t *tables) add(root int, lengths []uint8, store bool) bool {
	count := prefix.Count(lengths)
	used, unused := len(lengths)-count[0], count.Unused()
	if used == 0 || unused < 0 || used > 1 && unused != 0 {
		return false
	}
	if store {
		count.SortSymbols(t.sorted[:], lengths)
		t.build(root, &count, used)
	}
	return true
}

// build appends the table of a code whose symbols are sorted.
func (t *tables) build(root int, count *prefix.Counts, used int) {
	begin := len(t.entries)
	t.grow(1 << root)
	table := t.entries[begin:]
	if used == 1 {
		for i := range table {
			table[i] = entry(t.sorted[0]) << 16
		}
		return
	}
	code, i := uint32(0), 0 // the code's bits are in reverse
	for n := 1; n <= root; n++ {
		for range count[n] {
			for j := int(code); j < 1<<root; j += 1 << n {
				table[j] = entry(t.sorted[i])<<16 | entry(n)
			}
			i++
			code = prefix.NextCode(code, n)
		}
	}
	t.buildFurther(begin, root, count, code, i)
}

// buildFurther appends the tables of codes longer than root, from symbol i on.
func (t *tables) buildFurther(begin, root int, count *prefix.Counts, code uint32, i int) {
	const none = 1 << 31
	first, place, size := uint32(none), 0, 0
	for n := root + 1; n <= maxBits; n++ {
		for left := count[n]; left > 0; left-- {
			if p := code & (1<<root - 1); p != first {
				first, place, size = p, len(t.entries), count.TableBits(root, n, left)
				t.grow(1 << size)
				t.entries[begin+int(p)] = entry(place-begin)<<16 | entry(root+size)
			}
			for j := int(code >> root); j < 1<<size; j += 1 << (n - root) {
				t.entries[place+j] = entry(t.sorted[i])<<16 | entry(n-root)
			}
			i++
			code = prefix.NextCode(code, n)
		}
	}
}

func (t *tables) grow(n int) { t.entries = append(t.entries, make([]entry, n)...) }

// rootTable is a table without the further ones behind it.
type rootTable = [1 << rootBits]entry

// symbol reads a symbol by a table of rootBits. At least maxBits bits count.
func (r *bitReader) symbol(table []entry) int {
	e := (*rootTable)(table)[r.acc&(1<<rootBits-1)]
	if e.bits() > rootBits {
		e = further(table, e, r.acc)
	}
	r.drop(e.bits())
	return e.symbol()
}

// further looks up a code that is longer than rootBits. The entry has all of its bits.
func further(table []entry, e entry, acc uint64) entry {
	size := e.bits() - rootBits
	return table[e.symbol()+int(acc>>rootBits&(1<<(size&63)-1))] + rootBits
}

// literals reads pixels while they are no copies and of no cache, as many as pix has room for, and returns how many.
func (r *bitReader) literals(g *group, pix []uint32) int {
	greens, reds := (*rootTable)(g.tables[green]), (*rootTable)(g.tables[red])
	blues, alphas := (*rootTable)(g.tables[blue]), (*rootTable)(g.tables[alpha])
	acc, count := r.acc, r.bits
	for n := range pix {
		if count < 2*maxBits {
			r.acc, r.bits = acc, count
			r.refill()
			acc, count = r.acc, r.bits
		}
		e := greens[acc&(1<<rootBits-1)]
		if e.bits() > rootBits {
			e = further(g.tables[green], e, acc)
		}
		v := uint32(e.symbol())
		if v >= literals {
			r.acc, r.bits = acc, count
			return n
		}
		acc >>= e & maxShift
		count -= int(e & maxShift)
		if g.trivial {
			pix[n] = g.rest | v<<8
			continue
		}
		if e = reds[acc&(1<<rootBits-1)]; e.bits() > rootBits {
			e = further(g.tables[red], e, acc)
		}
		acc >>= e & maxShift
		count -= int(e & maxShift)
		v = v<<8 | uint32(e)&0xff0000
		if count < 2*maxBits {
			r.acc, r.bits = acc, count
			r.refill()
			acc, count = r.acc, r.bits
		}
		if e = blues[acc&(1<<rootBits-1)]; e.bits() > rootBits {
			e = further(g.tables[blue], e, acc)
		}
		acc >>= e & maxShift
		count -= int(e & maxShift)
		v |= uint32(e >> 16)
		if e = alphas[acc&(1<<rootBits-1)]; e.bits() > rootBits {
			e = further(g.tables[alpha], e, acc)
		}
		acc >>= e & maxShift
		count -= int(e & maxShift)
		pix[n] = v | uint32(e>>16)<<24
	}
	r.acc, r.bits = acc, count
	return len(pix)
}

// maxShift is the bits of an entry's number of bits.
const maxShift = 31
