package order

import (
	"slices"
	"testing"
)

// listOrder is an order as a list.
func listOrder(p *Permutation, n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i], _ = p.At(uint64(i))
	}
	return list
}

// joinBlocks is the order of blocks as its definition says it: block by block.
func joinBlocks(n, size int, seed uint64, epoch uint32) (list []uint32) {
	count := (n + size - 1) / size
	for _, block := range listOrder(NewPermutation(uint64(count), seed, epoch), count) {
		for i := int(block) * size; i < min(n, (int(block)+1)*size); i++ {
			list = append(list, uint32(i))
		}
	}
	return list
}

// Of every size, with and without samples that are left over, up to more blocks than a table has, the order is that of
// its definition: so each sample comes once and neighbours stand together. Position is the way back.
func TestBlocksStandTogetherWhateverIsLeftOver(t *testing.T) {
	counts := append(sizes(1, 70, 1), 255, 1000, 1024, 1025, 2047, 2051, 5000)
	for _, n := range counts {
		for _, size := range []int{1, 2, 3, 4, 7, 8, 16, 61, 64, 1000, 5000, 6000} {
			for epoch := range uint32(3) {
				p := NewBlockPermutation(uint64(n), uint64(size), 5, epoch)
				got := listOrder(p, n)
				if !slices.Equal(got, joinBlocks(n, size, 5, epoch)) {
					t.Fatalf("%d samples in blocks of %d, epoch %d: %d", n, size, epoch, got)
				}
				for i, x := range got {
					if at := p.Position(x); at != uint64(i) {
						t.Fatalf("%d samples in blocks of %d, epoch %d: sample %d is at %d, Position says %d", n, size, epoch, x, i, at)
					}
				}
			}
		}
	}
}

// Blocks of one sample are the order without blocks.
func TestBlocksOfOneAreTheUniformOrder(t *testing.T) {
	for _, n := range []int{1, 7, 1024, 1025, 3000} {
		blocks := NewBlockPermutation(uint64(n), 1, 17, 2)
		if !slices.Equal(listOrder(blocks, n), listOrder(NewPermutation(uint64(n), 17, 2), n)) {
			t.Errorf("%d samples: blocks of one are another order", n)
		}
	}
}

// The last position of the largest order is within reach, for blocks that divide it and for others.
func TestBlocksOfTheLargestOrder(t *testing.T) {
	for _, size := range []uint64{2, 3, 256, 1000, MaxSamples - 1, MaxSamples, MaxSamples + 1} {
		p := NewBlockPermutation(MaxSamples, size, 5, 9)
		for x := uint64(0); x < MaxSamples; x += 104729 * 1013 {
			for _, at := range []uint64{x, MaxSamples - 1 - x} {
				if y, repeat := p.At(at); repeat != 0 || p.Position(y) != at {
					t.Fatalf("blocks of %d: sample %d at %d: Position says %d", size, y, at, p.Position(y))
				}
			}
		}
	}
}

func TestBlocksRepeatBeyondTheSamples(t *testing.T) {
	p := NewBlockPermutation(1001, 8, 1, 1)
	for _, at := range []uint64{0, 500, 1000} {
		first, _ := p.At(at)
		if x, repeat := p.At(3*1001 + at); x != first || repeat != 3 {
			t.Errorf("position %d: sample %d repeat %d, want %d repeat 3", 3*1001+at, x, repeat, first)
		}
	}
}

// The order of blocks is uniform, wherever the one that is shorter stands.
func TestOrderOfBlocksIsUniform(t *testing.T) {
	const size = 5
	order := func(n int) maker { // of the blocks, by the first sample of each
		return func(out []uint32, key uint64) {
			list := listOrder(NewBlockPermutation(uint64(n*size-2), size, 17, uint32(key)), n*size-2)
			count := 0
			for _, x := range list {
				if x%size == 0 {
					out[count] = x / size
					count++
				}
			}
		}
	}
	if z, n := worst(sizes(2, 60, 1), func(n int) int { return 12 + 10000/n }, order); z > limit {
		t.Errorf("%d blocks: %.1f standard deviations from uniform", n, z)
	}
}

func TestBlocksOfNothingPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("blocks of 0 samples: no panic")
		}
	}()
	NewBlockPermutation(10, 0, 0, 0)
}

func BenchmarkAtInBlocks(b *testing.B) {
	p := NewBlockPermutation(1281167, 64, 1, 1)
	for i := range b.N {
		p.At(uint64(i) % 1281167)
	}
}
