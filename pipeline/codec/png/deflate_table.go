package png

import "github.com/feedwater-io/feedwater/pipeline/codec/internal/prefix"

// An entry says what the next bits of deflated data mean. Its lowest 6 bits are how many it takes, the next 2 how many literals it is.
//
//	literals: bits 8-15 the first, 16-23 the second, 24-31 the third
//	length: bits 16-24 the base, bits 8-12 the code's bits alone, without those that are added to the base
//	distance: bits 14-28 the base, bits 8-12 as of a length
//	else isOther: isTable, with bits 8-11 the bits of a further table and 14-27 its place; isEnd of a block; neither: no code
type entry uint32

const (
	aLiteral entry = 1 << 6
	isOther  entry = 1 << 31
	isTable  entry = 1 << 30
	isEnd    entry = 1 << 29

	entryBits = 63
	// mostLiterals is how many one entry can be.
	mostLiterals = 3
)

// The bits of the first tables. Those of lengths' lengths lie where distances lie later.
const (
	literalRoot  = 12
	distanceRoot = 9
	lengthBits   = 7
)

func (e entry) isLiteral() bool   { return e&(mostLiterals*aLiteral) != 0 }
func (e entry) literals() int     { return int(e / aLiteral & mostLiterals) }
func (e entry) place() uint32     { return uint32(e >> 14 & 0x3fff) }
func (e entry) mask() uint32      { return 1<<(e>>8&15) - 1 }
func (e entry) codeBits() uint    { return uint(e >> 8 & 31) }
func (e entry) lengthBase() int   { return int(e >> 16 & 0x1ff) }
func (e entry) distanceBase() int { return int(e >> 14 & 0x7fff) }

// codeTables are the tables of a block.
type codeTables struct {
	literals  [1<<literalRoot + 2048]entry
	distances [1<<distanceRoot + 1024]entry
	lengths   [320]byte
	fixed     bool    // the tables are of the codes that the format fixes
	several   several // of the literals
}

// What symbols mean, without the bits of their codes; of a length and a distance the lowest bits are how many are added to its base.
var (
	literalSymbols  [288]entry
	distanceSymbols [32]entry
	lengthSymbols   [19]entry
)

func init() {
	for i := range 256 {
		literalSymbols[i] = aLiteral | entry(i)<<8
	}
	literalSymbols[256] = isOther | isEnd
	for i, base := 0, 3; i < 28; i++ {
		added := max(0, i/4-1)
		literalSymbols[257+i] = entry(base)<<16 | entry(added)
		base += 1 << added
	}
	literalSymbols[285] = 258 << 16
	literalSymbols[286], literalSymbols[287] = isOther, isOther
	for i, base := 0, 1; i < 30; i++ {
		added := max(0, i/2-1)
		distanceSymbols[i] = entry(base)<<14 | entry(added)
		base += 1 << added
	}
	distanceSymbols[30], distanceSymbols[31] = isOther, isOther
	for i := range lengthSymbols {
		lengthSymbols[i] = aLiteral | entry(i)<<8
	}
}

// fixedLengths are the lengths of the codes that the format fixes: of fixedLiterals symbols, then of 32 distances, of which the last two have no meaning.
var fixedLengths = func() (lengths [fixedLiterals + 32]byte) {
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		case i < fixedLiterals:
			lengths[i] = 8
		default:
			lengths[i] = 5
		}
	}
	return lengths
}()

const fixedLiterals = 288

// setFixed sets the codes that the format fixes, unless they are set.
func (c *codeTables) setFixed() {
	if c.fixed {
		return
	}
	c.fixed = c.set(fixedLengths[:fixedLiterals], fixedLengths[fixedLiterals:])
}

// set sets the codes by the lengths of their symbols, and reports whether they are complete.
func (c *codeTables) set(literals, distances []byte) bool {
	return buildTable(c.literals[:], literalRoot, literals, literalSymbols[:], true, &c.several) &&
		buildTable(c.distances[:], distanceRoot, distances, distanceSymbols[:], true, nil)
}

// canonical is a canonical code: how many symbols there are of each length, and the symbols in order.
type canonical struct {
	count  prefix.Counts
	symbol [288]uint16
}

// set orders the symbols, at most 288, by the lengths of their codes, whether there is such a code or not.
func (c *canonical) set(lengths []byte) {
	c.count = prefix.Count(lengths)
	c.count.SortSymbols(c.symbol[:], lengths)
}

// isTaken reports whether the code is one that zlib takes: complete, or where single, of one code of one bit at most.
func (c *canonical) isTaken(single bool) bool {
	if unused := c.count.Unused(); unused <= 0 {
		return unused == 0
	}
	used := 0
	for _, n := range c.count[1:] {
		used += n
	}
	return single && (used == 0 || used == 1 && c.count[1] == 1)
}

// buildTable makes a table for a code, whose first part has root bits; its entries are as many literals as fit, or where several is nil one. It reports
// whether there is such a code, and room.
func buildTable(table []entry, root int, lengths []byte, symbols []entry, single bool, several *several) bool {
	var c canonical
	if c.set(lengths); !c.isTaken(single) {
		return false
	}
	several.reset()
	table[0] = isOther      // where the code is not complete
	code, i := uint32(0), 0 // the code's bits are in reverse
	for n := 1; n <= root; n++ {
		copy(table[1<<(n-1):1<<n], table) // shorter codes, whatever the next bit is
		for range c.count[n] {
			e := symbols[c.symbol[i]].withCode(n)
			table[code] = e
			several.add(code, n, e)
			i++
			code = prefix.NextCode(code, n)
		}
		several.join(table, n)
	}
	return c.buildFurther(table, root, code, i, symbols)
}

// buildFurther makes the tables behind the first one, of codes from symbol i on.
func (c *canonical) buildFurther(table []entry, root int, code uint32, i int, symbols []entry) bool {
	const none = 1 << 31
	first, place, end, size := uint32(none), 0, 1<<root, 0
	for n := root + 1; n <= prefix.MaxBits; n++ {
		for left := c.count[n]; left > 0; left-- {
			if p := code & (1<<root - 1); p != first {
				first, place, size = p, end, c.count.TableBits(root, n, left)
				if end += 1 << size; end > len(table) {
					return false
				}
				table[p] = isOther | isTable | entry(place)<<14 | entry(size)<<8 | entry(root)
			}
			e := symbols[c.symbol[i]].withCode(n - root)
			for j := int(code >> root); j < 1<<size; j += 1 << (n - root) {
				table[place+j] = e
			}
			i++
			code = prefix.NextCode(code, n)
		}
	}
	return true
}

// withCode adds a code of n bits to a symbol.
func (e entry) withCode(n int) entry {
	if e.isLiteral() || e&isOther != 0 {
		return e + entry(n)
	}
	return e + entry(n)<<8 + entry(n)
}
