package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// private is a folder that nobody but this user can read, write or exchange, and that lasts until the machine restarts:
// below XDG_RUNTIME_DIR, else in shared memory. It makes the folder if create says so.
func (c *cache) private(create bool) (string, error) {
	var errs []error
	if filepath.IsAbs(c.runtime) {
		err := checkPrivate(c.runtime)
		if err == nil {
			return privateBelow(filepath.Join(c.runtime, "feedwater"), create)
		}
		errs = append(errs, err)
	}
	err := checkParent(c.memory)
	if err == nil {
		var dir string
		if dir, err = privateBelow(filepath.Join(c.memory, "feedwater-"+strconv.Itoa(os.Geteuid())), create); err == nil {
			return dir, nil
		}
	}
	return "", errors.Join(append(errs, err)...)
}

// privateBelow is the folder for lists in the private folder path.
func privateBelow(path string, create bool) (string, error) {
	for _, dir := range []string{path, filepath.Join(path, "snapshots")} {
		if create {
			if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return "", err
			}
		}
		if err := checkPrivate(dir); err != nil {
			return "", err
		}
	}
	return filepath.Join(path, "snapshots"), nil
}

// checkPrivate refuses what is no folder of this user's alone: a link that somebody planted, a folder of somebody else,
// one that others may enter.
func checkPrivate(path string) error {
	mode, err := ownedFolder(path, os.Geteuid())
	if err == nil && mode.Perm() != 0o700 {
		return fmt.Errorf("%s may be entered by others, or not by its owner: its mode is %o, not 700", path, mode.Perm())
	}
	return err
}

// checkParent refuses a folder in which others could exchange what is ours.
func checkParent(path string) error {
	mode, err := ownedFolder(path, 0, os.Geteuid())
	if err == nil && mode.Perm()&0o022 != 0 && mode&fs.ModeSticky == 0 {
		return fmt.Errorf("%s lets others exchange what lies in it", path)
	}
	return err
}

// ownedFolder is the mode of a folder, without following a link; an error if it is none, or belongs to none of some
// users.
func ownedFolder(path string, users ...int) (fs.FileMode, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	owner, known := ownerOf(fi)
	switch {
	case !fi.IsDir():
		return 0, fmt.Errorf("%s is no folder", path)
	case !known || !slices.Contains(users, owner):
		return 0, fmt.Errorf("%s belongs to somebody else", path)
	}
	return fi.Mode(), nil
}
