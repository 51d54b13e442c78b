package exif

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/exif/exiftest"
)

// TestPillow compares with what exif_transpose of Pillow 13 made of the corpus, which testdata/pillow.txt holds. The table was made by
// testdata/pillow.py from the same files: with FEEDWATER_EXIF_CORPUS set this test writes them to that folder.
func TestPillow(t *testing.T) {
	corpus := exiftest.New()
	if dir := os.Getenv("FEEDWATER_EXIF_CORPUS"); dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range corpus.Names {
			if err := os.WriteFile(filepath.Join(dir, name), corpus.Files[name], 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	table := readTable(t)
	if len(table) != len(corpus.Names) || len(table) < 400 {
		t.Errorf("%d files in the corpus, %d in the table", len(corpus.Names), len(table))
	}
	counts := map[string]int{}
	for _, name := range corpus.Names {
		got := "refused"
		v, err := Orientation(corpus.Files[name])
		if err == nil {
			got = fmt.Sprint(v)
		}
		want, _, _ := strings.Cut(table[name], "\t") // behind it stands what Pillow cannot write anew, or why it refuses
		if got != want {
			t.Errorf("%s: %s (%v), want %q", name, got, err, table[name])
		}
		counts[got]++
	}
	for _, kind := range []string{"1", "3", "6", "8", "refused"} {
		if counts[kind] < 10 {
			t.Errorf("%d files are %s: too few to say anything", counts[kind], kind)
		}
	}
}

func readTable(t *testing.T) map[string]string {
	b, err := os.ReadFile("testdata/pillow.txt")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		if name, said, _ := strings.Cut(lines.Text(), "\t"); !strings.HasPrefix(name, "#") {
			table[name] = said
		}
	}
	return table
}
