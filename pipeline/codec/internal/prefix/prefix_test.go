package prefix

import (
	"math/bits"
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
