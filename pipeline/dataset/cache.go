package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedwater-io/feedwater/pipeline/dataset/layout"
	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
)

// memory holds a manifest's bytes.
type memory struct {
	data   []byte
	mapped bool
}

// free gives the memory back.
func (m *memory) free() {
	if m.mapped {
		unmap(m.data)
	}
	*m = memory{}
}

// cache knows where the list of one data set is kept: in a folder, and where that cannot be written in one that only this user can read and that
// lasts until the machine restarts, and where there is none either in this process. Files are never changed, only replaced whole: processes may share them.
type cache struct {
	name  string // of the file
	dir   string // "" where there is no folder
	none  error  // why
	limit int64
	// runtime and memory are where a private folder may be: the user's own for files of running programs, and memory that all share.
	runtime, memory string
	trouble         func(error)
	call            CallFolder // for what is done in dir; may be nil
}

// unfinished is how the names of files end that are not lists yet.
const unfinished = ".*.tmp"

// ending of the names of lists.
const ending = ".manifest"

// ours matches the names of lists. The folder may have files of others.
var ours = regexp.MustCompile(`^[0-9a-f]{32}` + regexp.QuoteMeta(ending) + `$`)

var errNoRoom = errors.New("the list alone is larger than all lists may be")

func newCache(o Options, root string) cache {
	if o.Beneath != "" { // a list that was made without a look at links is another one
		root += "\x00" + o.Beneath
	}
	if o.Table != "" { // and so is that of the samples that a table names
		root += "\x00\x00" + filepath.Base(o.Table)
	}
	if o.Image != "" { // and one of other pictures
		root += "\x00image\x00" + o.Image
	}
	if o.Layout != "" { // and one of another layout
		root += "\x00layout\x00" + o.Layout
	}
	if o.Label != "" || o.Values != "" { // and one with other labels, or with values
		root += "\x00\x00\x00" + o.Label + "\x00" + o.Values
	}
	key := sha256.Sum256([]byte(root))
	c := cache{
		name: hex.EncodeToString(key[:16]) + ending, limit: o.CacheBytes,
		runtime: os.Getenv("XDG_RUNTIME_DIR"), memory: o.sharedMemory, trouble: o.Trouble, call: o.CallFolder,
	}
	c.dir, c.none = o.CacheFolder()
	return c
}

// find hands the lists that are kept to try, until it takes one.
func (c *cache) find(ctx context.Context, try func(memory) bool) bool {
	dirs := []string{c.dir}
	if private, err := c.private(false); err == nil {
		dirs = append(dirs, private)
	}
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		path := filepath.Join(dir, c.name)
		m, err := onFolder(ctx, c, dir, "look for the list", func() (memory, error) { return load(path) }, func(m memory) { m.free() })
		if err != nil {
			continue
		}
		if try(m) {
			c.use(dir)
			return true
		}
		m.free()
	}
	data := inMemory.get(c.name)
	return data != nil && try(memory{data: data})
}

// use says that a list in a folder is in use, see makeRoom.
func (c *cache) use(dir string) {
	_, _ = onFolder(briefly(), c, dir, "note the use of the list", func() (struct{}, error) { // where that cannot be said it is not in use
		now := time.Now()
		return struct{}{}, os.Chtimes(filepath.Join(dir, c.name), now, now)
	}, nil)
}

func load(path string) (memory, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO in its place must not make us wait for a writer
	if err != nil {
		return memory{}, err
	}
	defer f.Close()
	return mapWhole(f)
}

func mapWhole(f *os.File) (memory, error) {
	fi, err := f.Stat()
	if err != nil {
		return memory{}, err
	}
	if !fi.Mode().IsRegular() || fi.Size() < int64(manifest.MinBytes) || fi.Size() != int64(int(fi.Size())) {
		return memory{}, manifest.ErrDamaged
	}
	return mapFile(f, int(fi.Size()))
}

// privateLimit is what all lists in a private folder may take: it lies in memory, as a rule, and is not meant for them alone.
func privateLimit(dir string) int64 { return min(256<<20, fileSystemBytes(dir)/4) }

// create makes the file that a list is written to.
func (c *cache) create(dir string) (*os.File, error) { return os.CreateTemp(dir, c.name+unfinished) }

// sweep removes what killed processes left behind.
func (c *cache) sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, c.name+unfinished)) // nothing to sweep is fine
	for _, path := range left {
		if fi, err := os.Stat(path); err == nil && time.Since(fi.ModTime()) > time.Hour {
			_ = os.Remove(path)
		}
	}
}

// makeRoom sees to it that a list of n bytes is within the limit: lists of other data sets go, those that were not opened for longest first. Who
// has one of them open goes on with it.
func (c *cache) makeRoom(dir string, n, limit int64) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var others []fs.FileInfo
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() && ours.MatchString(e.Name()) && e.Name() != c.name {
			others = append(others, fi)
			n += fi.Size()
		}
	}
	slices.SortFunc(others, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, fi := range others {
		if n <= limit {
			break
		}
		if os.Remove(filepath.Join(dir, fi.Name())) == nil {
			n -= fi.Size()
		}
	}
	return nil // lists that may not be removed are not ours to count
}

// remove forgets the list: whoever opens the data set next finds out.
func (c *cache) remove() {
	inMemory.drop(c.name)
	if c.dir != "" {
		_, _ = onFolder(briefly(), c, c.dir, "remove the list", func() (struct{}, error) {
			return struct{}{}, os.Remove(filepath.Join(c.dir, c.name))
		}, nil)
	}
	if private, err := c.private(false); err == nil {
		_ = os.Remove(filepath.Join(private, c.name))
	}
}

// current reports whether every directory and file that the list depends on is the one that was scanned and its times are the same. A list that was just made
// is trusted as that of one's own scan would be.
func (s opening) current(ctx context.Context, readers int, justMade bool) bool {
	group, ctx := errgroup.WithContext(ctx)
	m := s.manifest
	for first := range readers {
		group.Go(func() (err error) {
			defer recoverFault(debug.SetPanicOnFault(true), &err)
			for i := first; i < m.Watches(); i += readers {
				if err := s.unchanged(ctx, i, justMade); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait() == nil
}

var errStale = errors.New("the directory changed")

// unchanged checks what is watched, number i. Its times say nothing when it changed so shortly before the scan that another change, during
// the scan, could have left the same times: file systems count time in steps, the coarsest in steps of 2 s.
func (s opening) unchanged(ctx context.Context, i int, justMade bool) error {
	const step = 2 * time.Second
	path, then := s.manifest.Watched(i)
	if s.shipped && then.Changed == math.MaxInt64 { // a folder on a server, which does not tell whether it changed
		return nil
	}
	if !justMade && then.Changed > s.manifest.Scanned()-int64(step) {
		return errStale
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	question := s.questions.Ask(layout.FolderOfWatched(path), false)
	now, err := layout.Stat(ctx, s.source, path)
	question.End()
	if err != nil {
		return err
	}
	if !now.IsStill(then) {
		return errStale
	}
	return nil
}
