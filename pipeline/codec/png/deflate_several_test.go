package png

import (
	"math/rand/v2"
	"testing"
)

// randomLengths are the lengths of a complete code of n symbols, at least 2; the more symbols are left over for long codes, the longer those are.
func randomLengths(r *rand.Rand, n int) []byte {
	lengths := []byte{1, 1}
	for len(lengths) < n {
		i := r.IntN(len(lengths))
		if r.IntN(3) == 0 {
			i = len(lengths) - 1
		}
		if lengths[i] == 15 {
			continue
		}
		lengths[i]++
		lengths = append(lengths, lengths[i])
	}
	r.Shuffle(n, func(i, j int) { lengths[i], lengths[j] = lengths[j], lengths[i] })
	return lengths
}

// An entry of the table of literals is what its bits mean, read symbol by symbol: as many literals as they have, up to three.
func TestEntriesAreSeveralLiterals(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 2))
	var joined, single codeTables
	seen := [mostLiterals + 1]int{}
	for range 60 {
		lengths := randomLengths(r, 2+r.IntN(285))
		if !buildTable(joined.literals[:], literalRoot, lengths, literalSymbols[:], true, &joined.several) ||
			!buildTable(single.literals[:], literalRoot, lengths, literalSymbols[:], true, nil) {
			continue // no room for further tables
		}
		for i := range entry(1 << literalRoot) {
			want, bits := single.literals[i], i
			for want.isLiteral() && want.literals() < mostLiterals {
				next := single.literals[bits>>(want&entryBits)]
				n := want&entryBits + next&entryBits
				if !next.isLiteral() || n > literalRoot {
					break
				}
				want = want&^entryBits + n + aLiteral | next>>8&0xff<<(8+8*want.literals())
			}
			if got := joined.literals[i]; got != want {
				t.Fatalf("bits %012b: entry %08x, want %08x", i, got, want)
			}
			seen[want.literals()]++
		}
		for i := 1 << literalRoot; i < len(single.literals); i++ {
			if single.literals[i] != joined.literals[i] {
				t.Fatalf("further table: entry %d is %08x, want %08x", i, joined.literals[i], single.literals[i])
			}
		}
	}
	for n, count := range seen {
		if count < 1000 {
			t.Errorf("%d entries of %d literals: %v", count, n, seen)
		}
	}
}
