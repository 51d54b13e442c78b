// Package treetest gives tests copies of this module's source to edit, build and compare. It is for tests alone and
// imports nothing of ours. What goes wrong ends the test.
package treetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module is the path that the packages of the module begin with.
const module = "github.com/feedwater-io/feedwater/"

// made are folders at the top of a module that are no source of it.
var made = []string{"bin", "dist", "demo", "build", "pictures"}

// Copy copies the source of the module that is in root, without tests, into a folder that is removed when the test
// ends, and returns that folder.
func Copy(t testing.TB, root string) string {
	t.Helper()
	dir := t.TempDir()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch base := filepath.Base(path); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && !isSource(name, base):
			return filepath.SkipDir
		case !d.Type().IsRegular() || strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "."): // .git of a work tree is a file
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // of the module
		if err != nil {
			return err
		}
		Write(t, filepath.Join(dir, name), string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// isSource tells of a folder whether source is in it.
func isSource(name, base string) bool {
	return !strings.HasPrefix(base, ".") && !slices.Contains(made, name) && base != "tests" && base != "__pycache__"
}

// Write writes a file, and makes its folder where there is none.
func Write(t testing.TB, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o750)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Replace puts now in the place of the first old in a file, which has one.
func Replace(t testing.TB, path, old, now string) {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // of the module
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q (%v)", path, old, err)
	}
	Write(t, path, strings.Replace(string(text), old, now, 1))
}

// MovePackage moves the package at from, with all below it, to another path below the module, and names it by that
// path's last part. Files that import it go on calling it what they called it.
func MovePackage(t testing.TB, dir, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(to)), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
	old, now := filepath.Base(from), filepath.Base(to)
	plain := regexp.MustCompile(`(?m)^(\s*|import )"` + regexp.QuoteMeta(module+from) + `"$`)
	other := regexp.MustCompile(`"` + regexp.QuoteMeta(module+from) + `(["/])`)
	clause := regexp.MustCompile(`(?m)^package ` + old + `$`)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // of the module
		if err != nil {
			return err
		}
		moved := plain.ReplaceAllString(string(text), `${1}`+old+` "`+module+to+`"`)
		moved = other.ReplaceAllString(moved, `"`+module+to+`${1}`)
		if filepath.Dir(path) == filepath.Join(dir, to) {
			moved = clause.ReplaceAllString(moved, "package "+now)
		}
		if moved != string(text) {
			Write(t, path, moved)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
