//go:build linux && !portable

package readcache

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A folder is made this user's alone. One in which others could have put something is refused, and so is what is none.
func TestFolderOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		mode  os.FileMode
		file  bool
		wrong string
	}{
		"ours": {0o700, true, ""}, "others may look": {0o755, true, ""}, "others may write, and nothing is there": {0o777, false, ""},
		"others may write": {0o777, true, "others may write in"}, "the group may write": {0o770, true, "others may write in"},
	} {
		dir := t.TempDir()
		if c.file {
			must(t, os.WriteFile(dir+"/x", nil, 0o600))
		}
		must(t, os.Chmod(dir, c.mode))
		cache, err := Open(dir, 1<<20, nil)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		must(t, err)
		must(t, cache.Close())
		if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%s: mode %o, %v", name, fi.Mode().Perm(), err)
		}
	}
	if os.Geteuid() == 0 { // who else could give a folder away
		dir := t.TempDir()
		must(t, os.Chown(dir, 12345, -1))
		if _, err := Open(dir, 1<<20, nil); err == nil || !strings.Contains(err.Error(), "belongs to another user (12345") {
			t.Errorf("a folder of somebody else: %v", err)
		}
	}
}

// What lies in the place of a block and is none is removed, and never waited for nor followed; then the block is kept.
func TestNoBlock(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a FIFO": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link": func(path string) error { return os.Symlink(path+".other", path) },
		"a link to a whole block": func(path string) error {
			if err := os.Rename(path+".was", path+".other"); err != nil {
				return err
			}
			return os.Symlink(path+".other", path)
		},
	} {
		c := openCache(t, t.TempDir(), 1<<20)
		c.Write(key(1), data(1))
		k := key(1)
		path := c.path(&k)
		must(t, os.Rename(path, path+".was"))
		must(t, put(path))
		if has(t, c, 1) {
			t.Errorf("%s is taken for a block", name)
		}
		if c.Write(key(1), data(1)); !has(t, c, 1) {
			t.Errorf("after %s no block is kept in %s", name, filepath.Base(path))
		}
	}
}
