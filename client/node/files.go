package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// readWithin is how long a small file may take to be read.
const readWithin = 10 * time.Second

// errNoAnswer is wrapped by errors that may pass by themselves.
var errNoAnswer = errors.New("the storage of a file does not answer")

// fileReads reads files whose storage may not answer. The zero value reads with os.ReadFile. A read that is under way
// is shared by all who want that file; each has a goroutine that ends when the storage answers, which may be never. One
// that is older than readWithin is left to itself, and the next who asks begins another.
type fileReads struct {
	mu    sync.Mutex
	going map[string]*fileRead
	read  func(string) ([]byte, error) // nil: os.ReadFile
}

type fileRead struct {
	began time.Time
	done  chan struct{} // closed when text and err are set
	text  []byte
	err   error
}

// secrets are read again each time that they are shown.
var secrets fileReads

// readFile reads a file as it is now. It returns when ctx ends, and after readWithin at most, with an error that wraps
// errNoAnswer.
func (f *fileReads) readFile(ctx context.Context, path string) ([]byte, error) {
	r := f.begin(path)
	timeout := time.NewTimer(readWithin)
	defer timeout.Stop()
	select {
	case <-r.done:
		return r.text, r.err
	case <-timeout.C:
		return nil, fmt.Errorf("%w: %s, for %s", errNoAnswer, path, readWithin)
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %s: %w", errNoAnswer, path, context.Cause(ctx))
	}
}

func (f *fileReads) begin(path string) *fileRead {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.going[path]; r != nil && time.Since(r.began) < readWithin {
		return r
	}
	r := &fileRead{began: time.Now(), done: make(chan struct{})}
	if f.going == nil {
		f.going = map[string]*fileRead{}
	}
	f.going[path] = r
	read := f.read
	if read == nil {
		read = os.ReadFile
	}
	go func() {
		r.text, r.err = read(path)
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.going[path] == r {
			delete(f.going, path)
		}
		close(r.done)
	}()
	return r
}
