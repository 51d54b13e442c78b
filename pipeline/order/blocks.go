package order

import "fmt"

// blocks is an order of runs of neighbours.
type blocks struct {
	order *Permutation // of the blocks
	size  uint64       // of all blocks but the last one
	last  uint64       // the number of the last block
	// begin is the position of the last block's first sample, and missing how many samples it has fewer than others.
	begin, missing uint64
}

// NewBlockPermutation returns an order of n samples in an epoch in which neighbours stay together: samples
// b·size … b·size+size−1 are block b, the last block has what is left over, and the blocks stand in the order that
// NewPermutation gives for so many, each with its samples in their own order. Of size 1 it is NewPermutation's. It
// panics unless 1 ≤ n ≤ MaxSamples and size ≥ 1.
func NewBlockPermutation(n, size, seed uint64, epoch uint32) *Permutation {
	check(n)
	if size < 1 {
		panic(fmt.Sprintf("order: blocks of %d samples; must be 1 or more", size))
	}
	if size == 1 {
		return NewPermutation(n, seed, epoch)
	}
	size = min(size, n)
	last := (n - 1) / size
	b := &blocks{order: NewPermutation(last+1, seed, epoch), size: size, last: last, missing: (last+1)*size - n}
	b.begin = b.order.Position(uint32(last)) * size
	return &Permutation{n: n, blocks: b}
}

// at returns the sample at a position below n.
func (b *blocks) at(position uint64) uint32 {
	if position >= b.begin+b.size-b.missing {
		position += b.missing // as if the last block were as long as the others
	}
	block, _ := b.order.At(position / b.size)
	return uint32(uint64(block)*b.size + position%b.size)
}

// position returns where a sample stands.
func (b *blocks) position(index uint32) uint64 {
	block := uint64(index) / b.size
	at := b.order.Position(uint32(block))*b.size + uint64(index)%b.size
	if block != b.last && at > b.begin {
		at -= b.missing
	}
	return at
}
