package prefix

import (
	"cmp"
	"slices"
)

// Lengths returns the lengths of the codes with which data takes the fewest bits in which each symbol occurs so many times: 0 for those that do not
// occur, else 1 to most. Where no code was too long it is Huffman's. Of two symbols the one that occurs more often, or as often and comes first, has no
// longer code. No more symbols than 1<<most may occur.
func Lengths(counts []int, most int) []uint8 {
	var used []int
	for symbol, n := range counts {
		if n > 0 {
			used = append(used, symbol)
		}
	}
	slices.SortStableFunc(used, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	frequent := make([]int, len(used))
	for i, symbol := range used {
		frequent[i] = counts[symbol]
	}
	numbers := limitLengths(countDepths(frequent), most)
	lengths := make([]uint8, len(counts))
	for n, number := range numbers {
		for _, symbol := range used[:number] {
			lengths[symbol] = uint8(n)
		}
		used = used[number:]
	}
	return lengths
}

// countDepths returns how many leaves of Huffman's tree are at each depth. counts are those of the leaves, the largest first. A single leaf is at
// depth 1.
func countDepths(counts []int) []int {
	if len(counts) < 2 {
		return []int{0, len(counts)}
	}
	leaves := len(counts)
	nodes := make([]int, leaves, 2*leaves-1) // first the leaves, the smallest first, then the nodes above, which are made in order
	for i, n := range counts {
		nodes[leaves-1-i] = n
	}
	parents := make([]int, 2*leaves-1)
	leaf, inner := 0, leaves
	for len(nodes) < cap(nodes) {
		sum := 0
		for range 2 {
			least := &leaf
			if leaf == leaves || inner < len(nodes) && nodes[inner] < nodes[leaf] {
				least = &inner
			}
			sum += nodes[*least]
			parents[*least] = len(nodes)
			*least++
		}
		nodes = append(nodes, sum)
	}
	depths := make([]int, len(nodes))
	var numbers []int
	for i := len(nodes) - 2; i >= 0; i-- {
		depths[i] = depths[parents[i]] + 1
		if i >= leaves {
			continue
		}
		for len(numbers) <= depths[i] {
			numbers = append(numbers, 0)
		}
		numbers[depths[i]]++
	}
	return numbers
}

// limitLengths makes a code's longest codes, of which there are so many of each length, most bits long: two of a length give way to one that is a bit
// shorter, and the other lengthens a code further up.
func limitLengths(numbers []int, most int) []int {
	for n := len(numbers) - 1; n > most; n-- {
		for numbers[n] > 0 {
			k := n - 2
			for numbers[k] == 0 {
				k--
			}
			numbers[n] -= 2
			numbers[n-1]++
			numbers[k+1] += 2
			numbers[k]--
		}
	}
	return numbers[:min(len(numbers), most+1)]
}
