package layout

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"path"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// namedFiles are the files that a list names.
type namedFiles struct {
	seed    maphash.Seed
	seen    map[uint64]struct{}
	folders map[string]int // how many in each folder; nil: nobody asks
}

// mostFolders is how many folders are counted; files of further ones are asked about one by one.
const mostFolders = 1 << 16

func newNamedFiles(from store.Store) *namedFiles {
	n := &namedFiles{seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	if from.Reads() > 0 {
		n.folders = map[string]int{}
	}
	return n
}

// add notes a file; true: it was there.
func (n *namedFiles) add(key string) (twice bool) {
	sum := maphash.String(n.seed, key)
	if _, twice = n.seen[sum]; twice {
		return true
	}
	n.seen[sum] = struct{}{}
	if n.folders != nil {
		folder := parentOf(key)
		if _, known := n.folders[folder]; known || len(n.folders) < mostFolders {
			n.folders[folder]++
		}
	}
	return false
}

func (n *namedFiles) has(key string) bool {
	_, there := n.seen[maphash.String(n.seed, key)]
	return there
}

// parentOf is the folder of a file, "" for the place itself.
func parentOf(key string) string {
	if dir := path.Dir(key); dir != "." {
		return dir
	}
	return ""
}

// folderListing tells what files on a server are by listing the folders that they lie in: a question for a thousand of
// them. What it does not know has to be asked about.
type folderListing struct {
	from      store.Store
	questions *Questions
	named     *namedFiles

	mu      sync.Mutex
	found   map[string]store.Attributes
	refused bool // the server does not list
}

const (
	// mostListed is how many files are known at once: some 200 bytes each.
	mostListed = 1 << 20
	// leastListed files of a folder are looked through, or so many times those that are named: beyond, it holds many others.
	leastListed, perNamed = 1000, 16
	// foldersAtOnce is how many folders are listed at once.
	foldersAtOnce = 64
)

// list lists the folders of some files, those that were not listed before.
func (l *folderListing) list(ctx context.Context, keys []string) {
	room := mostListed - len(l.found)
	listing, ctx := errgroup.WithContext(ctx)
	listing.SetLimit(foldersAtOnce)
	for _, key := range keys {
		folder := parentOf(key)
		named := l.named.folders[folder]
		if l.refused || named < 2 || named > room {
			continue
		}
		delete(l.named.folders, folder)
		room -= named
		listing.Go(func() error { return l.listFolder(ctx, folder, named) })
	}
	if err := listing.Wait(); err != nil { // what one by one are asked about tells why
		l.refused = true
	}
}

// listFolder lists one.
func (l *folderListing) listFolder(ctx context.Context, folder string, named int) error {
	defer l.questions.Ask(folder, true).End()
	d, err := l.from.OpenDirectory(ctx, folder, nil)
	if err != nil {
		return err
	}
	defer d.Close()
	for most := max(leastListed, perNamed*named); most > 0 && named > 0; most-- {
		name, _, err := d.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		key := path.Join(folder, string(name))
		if a, known := d.Known(); known && a.Kind == store.KindFile && l.named.has(key) {
			l.keep(key, a)
			named--
		}
	}
	return nil
}

func (l *folderListing) keep(key string, a store.Attributes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found[key] = a
}

// take is what was found of a file, once.
func (l *folderListing) take(key string) (store.Attributes, bool) {
	if l == nil {
		return store.Attributes{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a, known := l.found[key]
	delete(l.found, key)
	return a, known
}
