package jpeg

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPillow compares verdicts and pixels of the corpus with what Pillow 13 said, which testdata/pillow.txt holds. The
// table was made by testdata/pillow.py from the same files: with FEEDWATER_JPEG_CORPUS set this test writes them to that folder.
// A change of the table needs a new version of Pillow or a new file in the corpus as its reason.
func TestPillow(t *testing.T) {
	samples := newCorpus()
	if dir := os.Getenv("FEEDWATER_JPEG_CORPUS"); dir != "" {
		writeCorpus(t, dir, samples)
	}
	table := readTable(t)
	if len(table) != len(samples) {
		t.Errorf("%d files in the corpus, %d in the table", len(samples), len(table))
	}
	forLevels(t, func(t *testing.T, d *Decoder) {
		for i, s := range samples {
			if leftOut(i) {
				continue
			}
			want := table[s.name]
			if stricter[s.name] {
				want = "refused"
			}
			if got, err := outcome(d, s.data); got != want {
				t.Errorf("%s: %s (%v), want %q", s.name, got, err, want)
			}
		}
	})
}

// stricter are files that Pillow takes and this package does not: their data ends without a marker, or they say that they are
// arithmetic-coded.
var stricter = map[string]bool{"base.no-eoi": true, "base.half-eoi": true, "prog.sofca": true, "prog-rst.sofca": true}

// outcome is how the table has it: "refused", or size and hash.
func outcome(d *Decoder, b []byte) (string, error) {
	w, h, pix, err := decodeAll(d, b)
	if err != nil {
		return "refused", err
	}
	sum := sha256.Sum256(pix)
	return fmt.Sprintf("ok\t%d\t%d\t%s", w, h, hex.EncodeToString(sum[:16])), nil
}

func readTable(t *testing.T) map[string]string {
	b, err := os.ReadFile("testdata/pillow.txt")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), "\t")
		if strings.HasPrefix(name, "#") {
			continue
		}
		if strings.HasPrefix(rest, "refused") {
			rest = "refused"
		}
		table[name] = rest
	}
	return table
}

func writeCorpus(t *testing.T, dir string, samples []sample) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		if err := os.WriteFile(filepath.Join(dir, s.name), s.data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
