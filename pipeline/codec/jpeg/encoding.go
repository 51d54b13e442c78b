package jpeg

import (
	"cmp"
	"slices"
)

// symbolCounts is how often each symbol occurs.
type symbolCounts [256]int

// maxCodeLength is that of a Huffman code, before it is cut to the 16 that files can have: 64 need more symbols than there can be.
const maxCodeLength = 64

// makeDefinition makes the Huffman table with the shortest data, its codes of 16 bits at most and none of all ones.
func (s *symbolCounts) makeDefinition() definition {
	lengths := s.codeLengths()
	var used []int
	var counts [maxCodeLength + 1]int
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		counts[n]++
		if symbol < len(s) {
			used = append(used, symbol)
		}
	}
	limitLengths(&counts)
	slices.SortStableFunc(used, func(a, b int) int { return cmp.Or(cmp.Compare(lengths[a], lengths[b]), cmp.Compare(s[b], s[a])) })
	d := make(definition, 16, 16+len(used))
	for i := range d {
		d[i] = byte(counts[i+1])
	}
	for _, symbol := range used {
		d = append(d, byte(symbol))
	}
	return d
}

// codeLengths is the length of the code of each symbol, 0 for those that do not occur. The last one is of a symbol that never occurs, and
// takes the code of all ones.
func (s *symbolCounts) codeLengths() (lengths [257]int) {
	type node struct{ count, parent int }
	var nodes []node // the first are symbols
	var symbols, free []int
	for symbol := range lengths {
		count := 1
		if symbol < len(s) {
			count = s[symbol]
		}
		if count > 0 {
			symbols, free = append(symbols, symbol), append(free, len(nodes))
			nodes = append(nodes, node{count, -1})
		}
	}
	takeLeast := func() int {
		k := 0
		for i, n := range free {
			if nodes[n].count <= nodes[free[k]].count {
				k = i
			}
		}
		n := free[k]
		free = slices.Delete(free, k, k+1)
		return n
	}
	for len(free) > 1 {
		a, b := takeLeast(), takeLeast()
		nodes[a].parent, nodes[b].parent = len(nodes), len(nodes)
		free = append(free, len(nodes))
		nodes = append(nodes, node{nodes[a].count + nodes[b].count, -1})
	}
	for i, symbol := range symbols {
		for n := nodes[i].parent; n >= 0; n = nodes[n].parent {
			lengths[symbol]++
		}
	}
	return lengths
}

// limitLengths makes the code's longest ones 16 bits long: two of a length give way to one that is a bit shorter, and the other lengthens a code further up.
// Then it leaves out the longest one, of all ones.
func limitLengths(counts *[maxCodeLength + 1]int) {
	for n := maxCodeLength; n > 16; n-- {
		for counts[n] > 0 {
			k := n - 2
			for counts[k] == 0 {
				k--
			}
			counts[n] -= 2
			counts[n-1]++
			counts[k+1] += 2
			counts[k]--
		}
	}
	n := 16
	for counts[n] == 0 {
		n--
	}
	counts[n]--
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
