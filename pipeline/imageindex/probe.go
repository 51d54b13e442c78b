package imageindex

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Probe does in a folder what closing a Cache does: it lists the folder, and makes, writes and removes a file. The
// error is the system's. Where the disk does not answer it does not return.
func Probe(dir string) error {
	if _, err := os.ReadDir(dir); err != nil {
		return err
	}
	f, err := createTemp(filepath.Join(dir, fmt.Sprintf("%032x-%016x-*%s", 0, 0, unfinished))) // what is left of it goes like any other
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(magic))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
