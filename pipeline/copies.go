package pipeline

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/feedwater-io/feedwater/pipeline/imageindex"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// copiesFolder lies in the folder of the indexes.
const copiesFolder = "copies"

// openCopies finds the copies of all data sets.
func (x *IndexOptions) openCopies(revisions revision.Set) (*copyStore, error) {
	o := x.copiesOptions()
	c := &copyStore{dir: o.Dir}
	if err := c.readKey(!o.ReadOnly); err != nil && !o.ReadOnly {
		x.Trouble(fmt.Errorf("the key of copies: %w", err))
		o.ReadOnly = true
	}
	cache, err := imageindex.OpenByContent("copies"+decodedBy(revisions), o)
	if err != nil {
		return nil, err
	}
	c.Cache = cache
	return c, nil
}

// copiesOptions are those of the store of copies. Without a share those that are there, or come to be, are used.
func (x *IndexOptions) copiesOptions() imageindex.Options {
	return imageindex.Options{
		Dir: filepath.Join(x.folderName(), copiesFolder), MaxBytes: x.CopyBytes, ReadOnly: x.CopyBytes <= 0, Hold: x.Hold,
		Trouble: func(err error) {
			if errors.Is(err, imageindex.ErrFull) {
				err = fmt.Errorf("%w: %w", ErrCopiesFull, err)
			}
			x.Trouble(err)
		},
	}
}

// ErrCopiesFull is told to IndexOptions.Trouble where a file has no copy since there is no room for one.
var ErrCopiesFull = errors.New("there is no room for more copies")

// sharedCopies are the copies that the stores of one generation of the storage share.
type sharedCopies struct {
	generation uint64
	opening    sync.Once

	mu    sync.Mutex
	left  bool
	cache *copyStore
	err   error
}

// errLeft says that the storage did not answer meanwhile.
var errLeft = errors.New("copies were left that storage did not answer for")

// openOnce opens them by what the first caller gives; the others wait for that.
func (c *sharedCopies) openOnce(open func() (*copyStore, error)) (*copyStore, error) {
	c.opening.Do(func() {
		cache, err := open()
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil && c.left {
			cache.Abandon()
			cache, err = nil, errLeft
		}
		c.cache, c.err = cache, err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cache, c.err
}

// now are the copies once they are open; nil: they are not, or are none.
func (c *sharedCopies) now() *copyStore {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cache
}

// failed reports whether they could not be opened.
func (c *sharedCopies) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// leave abandons them, also those that are being opened; nil are none. It waits for no disk.
func (c *sharedCopies) leave() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left = true; c.cache != nil {
		c.cache.Abandon()
	}
}
