package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

var writeGolden = flag.Bool("write-golden", false, "write testdata/fingerprints.txt anew: saved states pin what is there")

// goldenTrees are folders whose fingerprints and orders no version may change.
var goldenTrees = []struct {
	name  string
	lines []string
}{
	{"one", []string{"a/x.jpg"}},
	{"classes like each other", []string{"a/x.jpg", "a-b/x.jpg", "a.b/x.jpg", "ab/x.jpg", "A/x.jpg", "a b/x.jpg"}},
	{"nested", []string{"a/z.jpg", "a/b/y.jpg", "a/b-c/y.jpg", "a/b/c/d/x.png", "a/b.jpg", "b/a/1.webp"}},
	{"names", []string{"a/10.jpg", "a/2.jpg", "a/É.jpg", "a/é.JPEG", "a/\xff.jpg", "a/\u65e5.jpg", "a/\U0001f600.jpg", "z/x.tiff"}},
	{"classes that are not text", []string{"\xe9/x.jpg", "\u00e9/x.jpg", "e/x.jpg"}},
	{"endings", []string{"a/x.jpg", "a/x.JPG", "a/x.gif", "a/x.txt", "a/.jpg", "a/x.pgm", "a/y.ppm", "a/z.bmp", "a/z.tif"}},
	{"links", []string{"a/x.jpg", "a/l.jpg -> x.jpg", "b -> a", "a/notes -> nowhere"}},
	{"flat", []string{"b.jpg", "a.jpg", "notes.txt"}},
	{"empty class", []string{"a/x.jpg", "b/", "c/x.jpg"}},
	{"many", manyLines()},
}

func manyLines() (all []string) {
	for i := range 2000 {
		all = append(all, fmt.Sprintf("n%04d/%s_%d.JPEG", i%37, strings.Repeat("k", i%11), i))
	}
	return all
}

// TestGoldenFingerprints: states that were saved pin fingerprints, and nodes of other versions compare them.
func TestGoldenFingerprints(t *testing.T) {
	var got strings.Builder
	for _, tree := range goldenTrees {
		o := options(t)
		o.Flat, o.Empty = true, true
		s := open(t, treetest.Grow(t, t.TempDir(), tree.lines...), o)
		list := sha256.New()
		for _, l := range lines(t, s) {
			fmt.Fprintf(list, "%q %d %d\n", l.key, l.label, l.size)
		}
		fmt.Fprintf(&got, "%s: %d samples, %s, list %s\n", tree.name, s.Len(), s.Fingerprint(), hex.EncodeToString(list.Sum(nil)[:8]))
		for _, c := range s.Classes() {
			fmt.Fprintf(&got, "  %q %d %016x\n", c.Name, c.Samples, c.Digest)
		}
	}
	const path = "testdata/fingerprints.txt"
	if *writeGolden {
		treetest.Must(t, os.WriteFile(path, []byte(got.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	treetest.Must(t, err)
	if got.String() != string(want) {
		t.Errorf("fingerprints or orders have changed:\n%s", firstDifference(got.String(), string(want)))
	}
}

// firstDifference is the first line of two texts that is not the same.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is %q, was %q", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, were %d", len(a), len(b))
}
