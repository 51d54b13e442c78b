//go:build !linux || portable

package store

type withinSystem struct{}

func (w *within) open() error  { return nil }
func (w *within) close() error { return w.root.Close() }

// check refuses a path whose links lead out of the folder, at this moment.
func (w *within) check(path string) error {
	if w == nil {
		return nil
	}
	_, err := w.root.Stat(w.below(path))
	if err := leadsOut(err); err != ErrLeadsOut { //nolint:errorlint // ours
		return err
	}
	_, err = w.direct(w.below(path))
	return err
}
