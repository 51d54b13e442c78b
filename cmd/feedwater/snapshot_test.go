package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSnapshot: the list of a folder is written beside it, or elsewhere, and verified against every file.
func TestSnapshot(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "train")
	if err := os.Rename(pictures(t, 5), dir); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call("snapshot", dir, "--verify"); code != exitError || !strings.Contains(errs, "no list lies beside it") {
		t.Errorf("code %d: %s", code, errs)
	}
	code, out, errs := call("snapshot", dir)
	if code != exitOK || !strings.Contains(out, "16 samples, fingerprint ") || !strings.Contains(out, filepath.Join(filepath.Dir(dir), ".feedwater")) {
		t.Fatalf("code %d: %s%s", code, out, errs)
	}
	if code, out, errs := call("snapshot", dir, "--verify"); code != exitOK || !strings.Contains(out, "16 samples, fingerprint ") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	if err := os.Chtimes(filepath.Join(dir, "class0", "02.jpg"), time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	code, _, errs = call("snapshot", dir, "--verify")
	if code != exitError || !strings.Contains(errs, "class0/02.jpg was written") || !strings.Contains(errs, "make it anew by feedwater snapshot") {
		t.Errorf("code %d: %s", code, errs)
	}
	elsewhere := filepath.Join(t.TempDir(), "deep", "er")
	if code, out, errs := call("snapshot", dir, "-o", elsewhere); code != exitOK || !strings.Contains(out, elsewhere) {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	if left, _ := filepath.Glob(elsewhere + "/*"); len(left) != 2 {
		t.Errorf("%q in the folder of lists", left)
	}
	for says, args := range map[string][]string{
		"takes one place, not 0":               {},
		"no such file or directory":            {dir + "/missing"},
		`class folders have no field "txt"`:    {dir, "--fields", "txt"},
		"only buckets are written":             {dir, "-o", "https://host/x"},
		"label=\"cls\" is for lists, tables, ": {dir, "--label", "cls"},
	} {
		if code, _, errs := call(append([]string{"snapshot"}, args...)...); code == exitOK || !strings.Contains(errs, says) {
			t.Errorf("%q: code %d: %s, want %q", args, code, errs, says)
		}
	}
}
