package jpeg

import (
	"cmp"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/prefix"
)

// symbolCounts is how often each symbol occurs.
type symbolCounts [256]int

// maxCodeLength is that of a Huffman code in a file.
const maxCodeLength = 16

// makeDefinition makes the Huffman table with the shortest data, its codes of 16 bits at most and none of all ones: that would be the code of the symbol
// behind all others, which never occurs.
func (s *symbolCounts) makeDefinition() definition {
	lengths := prefix.Lengths(append(s[:], 1), maxCodeLength)[:len(s)]
	d := make(definition, maxCodeLength)
	var used []byte
	for symbol, n := range lengths {
		if n > 0 {
			d[n-1]++
			used = append(used, byte(symbol))
		}
	}
	slices.SortStableFunc(used, func(a, b byte) int { return cmp.Compare(lengths[a], lengths[b]) })
	return append(d, used...)
}

// encoding has the code of each symbol.
type encoding struct {
	code [256]uint16
	size [256]uint8
}

// set takes the codes of a definition.
func (e *encoding) set(d definition) {
	code, k := 0, 16
	for n := 1; n <= 16; n++ {
		for range d[n-1] {
			e.code[d[k]], e.size[d[k]] = uint16(code), uint8(n) //nolint:gosec // 16 bits
			code++
			k++
		}
		code <<= 1
	}
}
