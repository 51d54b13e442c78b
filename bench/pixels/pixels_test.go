package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
)

const pictures = 3

func folder(t *testing.T) string {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	if err := jpegtest.Folder(dir, 1, pictures, 1); err != nil {
		t.Fatal(err)
	}
	return dir
}

// answers runs the command and returns its answers to orders.
func answers(t *testing.T, o options, orders ...string) []string {
	t.Helper()
	var out strings.Builder
	if err := o.run(strings.NewReader(strings.Join(orders, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

// Index, threads and what was measured before change no pixel.
func TestSamePixels(t *testing.T) {
	dir := folder(t)
	plain := options{data: dir, transforms: cropAndFlip, threads: 1}
	want := answers(t, plain, "check 1")
	indexed, first, both := plain, plain, plain
	indexed.index, first.first, both.threads = t.TempDir(), true, 2
	for name, o := range map[string]options{"index": indexed, "index there": indexed, "first epoch": first, "threads": both} {
		got := answers(t, o, "check 1", "time 0 2", "check 1")
		if got[0] != want[0] || got[2] != want[0] {
			t.Errorf("%s: %s, then %s; without: %s", name, got[0], got[2], want[0])
		}
		var s spent
		if err := json.Unmarshal([]byte(got[1]), &s); err != nil || s.Images != 2*pictures {
			t.Errorf("%s: %s for two epochs of %d pictures", name, got[1], pictures)
		}
	}
	if other := answers(t, plain, "check 2"); other[0] == want[0] {
		t.Error("another epoch has the same crops")
	}
	if files, err := filepath.Glob(filepath.Join(indexed.index, "*")); err != nil || len(files) == 0 {
		t.Errorf("nothing is in the index: %v", err)
	}
}

// The crops are those of the pictures: drawn anew in each epoch, in the order of the files.
func TestCrops(t *testing.T) {
	o := options{data: folder(t), transforms: cropAndFlip, threads: 1, crops: filepath.Join(t.TempDir(), "crops"), epochs: 2}
	answers(t, o)
	text, err := os.ReadFile(o.crops)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 2*pictures || slices.Equal(lines[:pictures], lines[pictures:]) {
		t.Fatalf("crops of two epochs of %d pictures:\n%s", pictures, text)
	}
	for i, line := range lines {
		var top, left, height, width, flip int
		var name string
		if _, err := fmt.Sscan(line, &top, &left, &height, &width, &flip, &name); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if want := fmt.Sprintf("class_000/img_%04d.jpg", i%pictures); name != want || height < 1 || width < 1 {
			t.Errorf("%q is no crop of %s", line, want)
		}
	}
}

func TestOrders(t *testing.T) {
	o := options{data: folder(t), transforms: cropAndFlip, threads: 1}
	if err := o.run(strings.NewReader("paint 1\n"), &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "paint") {
		t.Errorf("an order that there is not: %v", err)
	}
	o.data = filepath.Join(o.data, "none")
	if err := o.run(strings.NewReader(""), &strings.Builder{}); err == nil {
		t.Error("a folder that is not there is no error")
	}
}
