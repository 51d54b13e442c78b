package prefix

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// A code in reverse counts up as its mirror image does.
func TestNextCode(t *testing.T) {
	reverse := func(v uint32, n int) uint32 { return bits.Reverse32(v) >> (32 - n) }
	for n := 1; n <= MaxBits; n++ {
		code := uint32(0)
		for v := uint32(0); v < 1<<n; v++ {
			if code != reverse(v, n) {
				t.Fatalf("code %d of %d bits is %0*b in reverse", v, n, n, code)
			}
			code = NextCode(code, n)
		}
		if code != 0 {
			t.Fatalf("%0*b comes behind the last code of %d bits", n, code, n)
		}
	}
}

func TestUnused(t *testing.T) {
	for _, c := range []struct {
		lengths []uint8
		want    int
	}{
		{nil, 1 << 15}, {[]uint8{0, 0}, 1 << 15}, {[]uint8{1}, 1 << 14}, {[]uint8{1, 1}, 0}, {[]uint8{1, 2, 0, 3, 3}, 0}, {[]uint8{1, 2, 3}, 1 << 12},
		{[]uint8{1, 1, 15}, -1}, {[]uint8{1, 1, 1}, -1}, {[]uint8{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 1},
	} {
		counts := Count(c.lengths)
		if got := counts.Unused(); got != c.want {
			t.Errorf("%v: %d, want %d", c.lengths, got, c.want)
		}
	}
}

// Symbols are in the order of their codes: by length, and of one length by their numbers; also of more codes than there can be.
func TestSortSymbols(t *testing.T) {
	for _, c := range []struct {
		lengths []uint8
		want    []uint16
	}{
		{[]uint8{3, 0, 1, 3, 2}, []uint16{2, 4, 0, 3}}, {[]uint8{0, 15, 0, 1}, []uint16{3, 1}}, {[]uint8{1, 1, 1, 1}, []uint16{0, 1, 2, 3}}, {[]uint8{0}, nil},
	} {
		counts, got := Count(c.lengths), make([]uint16, len(c.want))
		if counts.SortSymbols(got, c.lengths); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.lengths, got, c.want)
		}
	}
}

// A further table has room for the codes that begin alike, and no more.
func TestTableBits(t *testing.T) {
	for _, c := range []struct {
		lengths       []uint8
		root, n, left int
		want          int
	}{
		{[]uint8{1, 2, 3, 3}, 1, 2, 1, 2}, {[]uint8{1, 2, 3, 3}, 2, 3, 2, 1}, {[]uint8{1, 2, 3, 4, 4}, 1, 2, 1, 3}, {[]uint8{2, 2, 3, 3, 3, 3}, 1, 3, 4, 2},
		{[]uint8{1, 15}, 8, 15, 1, 7},
	} {
		counts := Count(c.lengths)
		if got := counts.TableBits(c.root, c.n, c.left); got != c.want {
			t.Errorf("%+v: %d bits", c, got)
		}
	}
}

// Codes of any counts are complete, keep to the limit, and take no more bits than those of another code; symbols that are more frequent have none that are
// longer.
func TestLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for k := range 600 {
		counts := make([]int, 1+r.IntN(300))
		for range 1 + r.IntN(2*len(counts)) {
			counts[r.IntN(len(counts))] = 1 + r.IntN(1<<r.IntN(40))
		}
		if k%3 == 0 { // as skewed as can be
			counts = counts[:min(len(counts), 40)]
			for i, a, b := 0, 1, 1; i < len(counts); i, a, b = i+1, b, a+b {
				counts[i] = a
			}
		}
		most := 9 + r.IntN(MaxBits-8)
		lengths := Lengths(counts, most)
		bits, used := 0, 0
		for s, n := range lengths {
			if (n > 0) != (counts[s] > 0) || int(n) > most {
				t.Fatalf("symbol %d, %d times: %d bits of %d", s, counts[s], n, most)
			}
			for other, m := range lengths {
				if counts[other] > counts[s] && n > 0 && m > n {
					t.Fatalf("%d bits for %d times, %d for %d", m, counts[other], n, counts[s])
				}
			}
			if bits += counts[s] * int(n); n > 0 {
				used++
			}
		}
		complete := Count(lengths)
		if unused := complete.Unused(); used > 1 && unused != 0 || used == 1 && complete[1] != 1 {
			t.Fatalf("%d codes of %d symbols are left over: %v", unused, used, lengths)
		}
		if best := leastBits(counts); bits < best || bits > best && !slices.Contains(lengths, uint8(most)) {
			t.Fatalf("%d bits, Huffman's code has %d", bits, best)
		}
	}
	if got := Lengths([]int{0, 0}, 15); !slices.Equal(got, []uint8{0, 0}) {
		t.Errorf("no symbol has a code: %v", got)
	}
	if got := Lengths([]int{0, 0, 7}, 15); !slices.Equal(got, []uint8{0, 0, 1}) {
		t.Errorf("one symbol: %v", got)
	}
	if got := Lengths([]int{1, 1, 2, 4, 8}, 3); !slices.Equal(got, []uint8{3, 3, 3, 3, 1}) {
		t.Errorf("at most 3 bits: %v", got)
	}
}

// leastBits is how many bits data has in Huffman's code: the sum of all nodes above leaves, each of which is that of the two smallest there are.
func leastBits(counts []int) (bits int) {
	nodes := slices.DeleteFunc(slices.Clone(counts), func(n int) bool { return n == 0 })
	if len(nodes) == 1 {
		return nodes[0]
	}
	for slices.Sort(nodes); len(nodes) > 1; slices.Sort(nodes) {
		sum := nodes[0] + nodes[1]
		bits += sum
		nodes = append(nodes[2:], sum)
	}
	return bits
}
