package admission

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// reloadedFiles is a value made of files. It is made again when one of them has changed. Where that fails, the last
// good one stays, and it is tried again every second, for what is in the way (rights, handles, a disk) may go without a
// trace on the files; the log says so once per error.
type reloadedFiles[T any] struct {
	files []string
	parse func() (T, error)
	log   *slog.Logger

	mu    sync.Mutex
	value T
	seen  []fileVersion
	tried time.Time
	err   error // of the latest try; nil: value is what the files hold
}

const tryAgain = time.Second

// fileVersion is what tells one state of a file from another. A file that is not there has the zero one.
type fileVersion struct {
	size     int64
	modified time.Time
	info     os.FileInfo
}

func (v fileVersion) isStill(w fileVersion) bool {
	same := v.info == nil && w.info == nil || v.info != nil && w.info != nil && os.SameFile(v.info, w.info)
	return same && v.size == w.size && v.modified.Equal(w.modified)
}

// openReloaded makes the value for the first time.
func openReloaded[T any](log *slog.Logger, parse func() (T, error), files ...string) (*reloadedFiles[T], error) {
	r := &reloadedFiles[T]{parse: parse, log: log}
	for _, file := range files {
		if file != "" {
			r.files = append(r.files, file)
		}
	}
	r.seen = r.statFiles()
	var err error
	r.value, err = parse()
	return r, err
}

// currentValue returns the value of the files as they are.
func (r *reloadedFiles[T]) currentValue() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.statFiles()
	if slices.EqualFunc(now, r.seen, fileVersion.isStill) && (r.err == nil || time.Since(r.tried) < tryAgain) {
		return r.value
	}
	before := r.err
	r.seen, r.tried = now, time.Now()
	var value T
	if value, r.err = r.parse(); r.err == nil {
		r.value = value
		r.log.Info("read again", "files", r.files)
	} else if before == nil || before.Error() != r.err.Error() {
		r.log.Warn("a changed file is not used; what it held before stays in force", "files", r.files, "err", r.err)
	}
	return r.value
}

func (r *reloadedFiles[T]) statFiles() []fileVersion {
	all := make([]fileVersion, len(r.files))
	for i, file := range r.files {
		if info, err := os.Stat(file); err == nil {
			all[i] = fileVersion{info.Size(), info.ModTime(), info}
		}
	}
	return all
}

// maxSecretBytes bounds files of certificates and tokens.
const maxSecretBytes = 1 << 20

// readSecret reads a small file.
func readSecret(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) > maxSecretBytes {
		err = &os.PathError{Op: "read", Path: path, Err: errors.New("more than 1 MiB; is it the right file?")}
	}
	return b, err
}
