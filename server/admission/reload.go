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
// trace on the files; the log says so once per error. Storage that does not answer keeps nobody waiting for longer than
// lookWithin, once: what the files held before stays in force until it does.
//
// Goroutines: one per look at the files. It ends when the storage answers, which may be never; then another one looks
// at the files after looksAgain, and after ever longer from then on.
type reloadedFiles[T any] struct {
	files []string
	parse func() (T, error)
	log   *slog.Logger
	stat  func(string) (os.FileInfo, error) // os.Stat, but for tests

	mu     sync.Mutex
	value  T
	seen   []fileVersion
	tried  time.Time
	err    error         // of the latest try; nil: value is what the files hold
	look   chan struct{} // closed when the latest look is over; nil: none is under way
	number int           // of the latest look
	late   int           // looks, one after the other, that took longer than lookWithin
	began  time.Time     // the latest look
}

const (
	// lookWithin is how long somebody waits for a look.
	lookWithin = time.Second
	// looksAgain is after how long another look begins while one is under way.
	looksAgain = 30 * time.Second
)

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

// openReloaded makes the value for the first time. It waits for the storage.
func openReloaded[T any](log *slog.Logger, parse func() (T, error), files ...string) (*reloadedFiles[T], error) {
	r := &reloadedFiles[T]{parse: parse, log: log, stat: os.Stat}
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

// currentValue returns the value of the files as they are, or as they were where they cannot be looked at.
func (r *reloadedFiles[T]) currentValue() T {
	if look := r.beginLook(); look != nil {
		timeout := time.NewTimer(lookWithin)
		defer timeout.Stop()
		select {
		case <-look:
		case <-timeout.C:
			r.noteLate(look)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value
}

// beginLook has the files looked at, and returns what is closed then; nil: nobody is to wait for it.
func (r *reloadedFiles[T]) beginLook() (look <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.look != nil {
		if r.late == 0 {
			return r.look
		}
		if time.Since(r.began) < looksAgain<<min(r.late-1, 16) {
			return nil
		}
		r.late++
	}
	r.number++
	r.look, r.began = make(chan struct{}), time.Now()
	go r.lookAtFiles(r.number, r.look, r.seen, r.err == nil || time.Since(r.tried) < tryAgain)
	if r.late > 0 {
		return nil
	}
	return r.look
}

// noteLate notes that somebody has waited for a look for long enough.
func (r *reloadedFiles[T]) noteLate(look <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.look == look && r.late == 0 {
		r.late = 1
		r.log.Warn("the storage of a file does not answer; what it held before stays in force", "files", r.files)
	}
}

// lookAtFiles makes the value again if the files are not what was seen, or if good is not set. It uses r.mu only when
// the storage has answered.
func (r *reloadedFiles[T]) lookAtFiles(number int, look chan struct{}, seen []fileVersion, good bool) {
	now := r.statFiles()
	if slices.EqualFunc(now, seen, fileVersion.isStill) && good {
		r.endLook(number, look, nil)
		return
	}
	value, err := r.parse()
	r.endLook(number, look, func() { r.take(now, value, err) })
}

// endLook ends a look, and calls found, if set, unless a later one has begun.
func (r *reloadedFiles[T]) endLook(number int, look chan struct{}, found func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(look)
	if number != r.number {
		return
	}
	if r.late > 0 {
		r.log.Info("the storage of a file answers again", "files", r.files)
	}
	r.look, r.late = nil, 0
	if found != nil {
		found()
	}
}

// take notes what a look found. mu is held.
func (r *reloadedFiles[T]) take(now []fileVersion, value T, err error) {
	before := r.err
	r.seen, r.tried, r.err = now, time.Now(), err
	if err == nil {
		r.value = value
		r.log.Info("read again", "files", r.files)
	} else if before == nil || before.Error() != err.Error() {
		r.log.Warn("a changed file is not used; what it held before stays in force", "files", r.files, "err", err)
	}
}

func (r *reloadedFiles[T]) statFiles() []fileVersion {
	all := make([]fileVersion, len(r.files))
	for i, file := range r.files {
		if info, err := r.stat(file); err == nil {
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
