package readcache

import (
	"fmt"
	"os"
)

// ownFolder sees to it that a folder is this user's alone, as all that lies in it is taken for what was read. A link to one is followed. One that
// belongs to somebody else is refused, and so is one with something in it in which others may write; else its mode is made 700.
func ownFolder(dir string) error {
	fi, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return fmt.Errorf("%s is no folder", dir)
	}
	if owner, known := ownerOf(fi); known && owner != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (%d, and this process runs as %d): name a folder below it, which is made for this user alone", dir, owner, os.Geteuid())
	}
	mode := fi.Mode().Perm()
	if mode&0o077 == 0 {
		return nil
	}
	if mode&0o022 != 0 {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			return fmt.Errorf("others may write in %s (mode %o), so what lies there may be theirs: remove it, or name another folder", dir, mode)
		}
	}
	return os.Chmod(dir, 0o700) //nolint:gosec // a folder has to be entered
}

// isOurs reports whether a file that is open is a regular one of this user's.
func isOurs(fi os.FileInfo) bool {
	owner, known := ownerOf(fi)
	return fi.Mode().IsRegular() && (!known || owner == os.Geteuid())
}
