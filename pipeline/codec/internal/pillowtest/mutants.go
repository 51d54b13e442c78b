package pillowtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	mutants   = flag.Uint64("mutants", 0, "how many damaged files of each format TestMutants compares, from 1 on; 0: as many as it says itself")
	mutantFor = flag.Duration("mutants-for", 0, "how long TestMutants goes on with each format, with other files each time; 0: see -mutants")
	mutant    = flag.Uint64("mutant", 0, "the only file that TestMutants compares, and writes to the folder of -artifacts; 0: see -mutants")
)

// A Mutant is a damaged file that was compared.
type Mutant struct {
	File []byte
	// What is what was said of it. Where it has a colon, which follows the word wrong, the test fails.
	What string
	Err  error // of the decoder
}

// CompareMutants compares damaged files by their numbers: those that flags ask for, or count of them. again is how to run the test, ending that of the
// files' names.
func CompareMutants(t *testing.T, count uint64, again, ending string, compare func(n uint64) Mutant) {
	t.Helper()
	seen := map[string]int{}
	one := func(n uint64) {
		m := compare(n)
		kind, _, wrong := strings.Cut(m.What, ":")
		if seen[kind]++; wrong {
			t.Errorf("file %d: %s (%v)\nto see it again: go test %s -mutant %d -artifacts", n, m.What, m.Err, again, n)
		}
		if *mutant != 0 {
			keepFile(t, fmt.Sprintf("mutant-%d.%s", n, ending), m.File)
		}
	}
	begun := time.Now()
	switch {
	case *mutant != 0:
		one(*mutant)
	case *mutantFor != 0:
		for n := uint64(begun.UnixMicro()); time.Since(begun) < *mutantFor; n++ {
			one(n)
		}
	default:
		if *mutants != 0 {
			count = *mutants
		}
		for n := range count {
			one(n + 1)
		}
	}
	t.Logf("damaged files by what was said of them: %v", seen)
}

func keepFile(t *testing.T, name string, b []byte) {
	t.Helper()
	path := filepath.Join(t.ArtifactDir(), name)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log(path)
}

// Place is a place in b, as often among its first bytes, where headers are, as anywhere.
func Place(r *rand.Rand, b []byte, first int) int {
	if r.IntN(2) == 0 {
		return r.IntN(len(b))
	}
	return r.IntN(min(len(b), first))
}

// Stretch is some neighbouring bytes of b, from a Place on.
func Stretch(r *rand.Rand, b []byte, first int) (from, to int) {
	from = Place(r, b, first)
	return from, min(len(b), from+1+r.IntN(1<<r.IntN(8)))
}
