package store

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLeadsOut is wrapped by errors about links that lead out of the folder beneath of OpenFiles.
var ErrLeadsOut = errors.New("a link leads out of the root, which may not be followed here: move what it names into the root, or serve with --links=anywhere")

// within keeps whoever opens files of a data set below the folder beneath of OpenFiles, whatever links say and whoever exchanges them meanwhile.
type within struct {
	root   *os.Root // the folder; see openLocal
	path   string   // its path, without links
	prefix string   // of the data set below it
	withinSystem
}

// newWithin opens the folder beneath, in which path lies; both without links.
func newWithin(beneath, path string) (*within, error) {
	prefix, err := filepath.Rel(beneath, path)
	if err != nil || !filepath.IsLocal(prefix) {
		return nil, &os.PathError{Op: "open", Path: path, Err: ErrLeadsOut}
	}
	root, err := os.OpenRoot(beneath)
	if err != nil {
		return nil, err
	}
	w := &within{root: root, path: beneath, prefix: prefix}
	if err := w.open(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return w, nil
}

// below is the path from the folder to what has this path below the data set.
func (w *within) below(path string) string { return filepath.Join(w.prefix, filepath.FromSlash(path)) }

// direct is another path of what path leads to, below the folder and without links: a link whose target is an absolute path may lead to
// something below it too.
func (w *within) direct(path string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(w.path, path))
	if err != nil {
		return "", ErrLeadsOut // or nowhere
	}
	below, err := filepath.Rel(w.path, real)
	if err != nil || !filepath.IsLocal(below) {
		return "", ErrLeadsOut
	}
	return below, nil
}

// leadsOut tells the errors of os.Root that say so from those of the system.
func leadsOut(err error) error {
	if err == nil {
		return nil
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return ErrLeadsOut
}
