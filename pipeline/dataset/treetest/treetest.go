// Package treetest makes folders of files. It is for tests, and imports nothing of ours.
package treetest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Must ends a test with an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Grow makes files below a folder, of as many bytes as their line has, and returns the folder: "name", "folder/" or "link -> target".
func Grow(t testing.TB, root string, lines ...string) string {
	t.Helper()
	for _, line := range lines {
		path, target, isLink := strings.Cut(line, " -> ")
		at := root + "/" + path
		Must(t, os.MkdirAll(filepath.Dir(at), 0o700))
		switch {
		case isLink:
			Must(t, os.Symlink(target, at))
		case strings.HasSuffix(line, "/"):
			Must(t, os.MkdirAll(at, 0o700))
		default:
			Must(t, os.WriteFile(at, bytes.Repeat([]byte{'x'}, len(line)), 0o600))
		}
	}
	return root
}
