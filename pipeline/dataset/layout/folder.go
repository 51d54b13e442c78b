package layout

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Folder is the layout of torchvision's ImageFolder: a folder for each class. Which files are samples, their order and their labels are exactly
// those of torchvision.
type Folder struct {
	// Flat takes a folder without folders in it too: its pictures are samples, of one class whose name is empty.
	Flat bool
	// Empty takes class folders without pictures too: as classes without samples, which keep their places among the labels.
	Empty bool
}

// ListFolder is the folder for lists of samples that lie beside their data. In a bucket it is no class.
const ListFolder = ".feedwater"

// Form implements Layout.
func (Folder) Form() manifest.Form { return 0 }

// scanner reads a data set's directories, several at once. It holds the found names of a few classes at a time: those whose
// turn in label order has not come yet.
type scanner struct {
	root     store.Store
	group    *errgroup.Group
	buffers  sync.Pool // *[]byte, for directory entries
	lookers  *lookers
	progress progress
}

// classScan is what the scan found of one class; folders are in order.
type classScan struct {
	name    string
	folders []*folder
	sha256  [32]byte

	mu   sync.Mutex
	todo sync.WaitGroup // folders still being read
}

func (c *classScan) samples() (n int) {
	for _, f := range c.folders {
		n += len(f.pictures)
	}
	return n
}

func newScanner(from store.Store, o *Options) *scanner {
	s := &scanner{root: from, lookers: newLookers(o), progress: progress{report: o.Progress}}
	s.buffers.New = func() any { b := make([]byte, 32<<10); return &b }
	return s
}

// Scan implements Layout.
func (l Folder) Scan(ctx context.Context, from store.Store, o Options, to *manifest.Builder) error {
	s := newScanner(from, &o)
	top, err := s.read(ctx, "", nil) // its folders are the classes
	if err != nil {
		return err
	}
	to.Watch("", top.Attributes)
	if from.Reads() > 0 { // on a server, where lists lie within
		top.below = slices.DeleteFunc(top.below, func(name string) bool { return name == ListFolder })
	}
	if len(top.below) == 0 && len(top.pictures) > 0 && l.Flat {
		return s.flat(ctx, to)
	}
	if len(top.below) == 0 {
		return s.noClasses(ctx, top)
	}
	var empty []string
	err = s.classes(ctx, top, o.Readers, func(c *classScan) error {
		if c.samples() == 0 {
			empty = append(empty, c.name)
		}
		return c.list(to)
	})
	if err != nil {
		return err
	}
	if len(empty) > 0 && (!l.Empty || len(empty) == len(top.below)) {
		return EmptyClasses(empty)
	}
	s.progress.last()
	return nil
}

// flat lists a folder whose pictures lie in it directly.
func (s *scanner) flat(ctx context.Context, to *manifest.Builder) error {
	f, err := s.read(ctx, "", &folder{})
	if err != nil {
		return err
	}
	c := &classScan{folders: []*folder{f}}
	c.sha256 = c.digest()
	if err := c.list(to); err != nil {
		return err
	}
	s.progress.last()
	return nil
}

// list adds a class and its samples to a manifest.
func (c *classScan) list(to *manifest.Builder) error {
	to.Class(c.name, c.samples(), c.sha256)
	var key []byte
	for _, f := range c.folders {
		to.Watch(f.path, f.Attributes)
		key = key[:0]
		if f.path != "" {
			key = append(append(key, f.path...), '/')
		}
		stem := len(key)
		for _, p := range f.pictures {
			key = append(key[:stem], f.name(p)...)
			sample := f.sample(key, p)
			if err := to.Sample(&sample); err != nil {
				return err
			}
		}
	}
	return nil
}

// classes hands every class to take, in label order, one at a time. At most readers directories are read at once, and at most
// twice as many classes are under way.
func (s *scanner) classes(parent context.Context, top *folder, readers int, take func(*classScan) error) error {
	stoppable, cancel := context.WithCancel(parent)
	defer cancel()
	group, ctx := errgroup.WithContext(stoppable)
	s.group = group
	group.SetLimit(readers)
	begun := make(chan chan *classScan, readers)
	taken := make(chan error, 1)
	go func() { taken <- takeAll(ctx, cancel, begun, take) }()
	for _, name := range top.below {
		if ctx.Err() != nil {
			break
		}
		done := make(chan *classScan, 1)
		begun <- done
		group.Go(func() error { return s.class(ctx, name, top, done) })
	}
	close(begun)
	takeErr := <-taken
	err := group.Wait()
	if takeErr != nil {
		return takeErr
	}
	if err != nil {
		return err
	}
	return parent.Err() // a cancelled scan left classes out, even where no reader noticed
}

// takeAll hands classes to take as they are done. After an error of take the scan is stopped, and nothing is taken any more.
func takeAll(ctx context.Context, stop func(), begun <-chan chan *classScan, take func(*classScan) error) (err error) {
	for done := range begun {
		select {
		case c := <-done:
			if err != nil {
				continue
			}
			if err = take(c); err != nil {
				stop()
			}
		case <-ctx.Done():
		}
	}
	return err
}

// class reads one class and all folders below it.
func (s *scanner) class(ctx context.Context, name string, top *folder, done chan<- *classScan) error {
	c := &classScan{name: name}
	c.todo.Add(1)
	err := s.walk(ctx, c, name, top)
	c.todo.Wait()
	if err != nil {
		return err
	}
	slices.SortFunc(c.folders, func(a, b *folder) int { return compareNames(a.path, b.path) })
	c.sha256 = c.digest()
	done <- c // not whole if a folder below failed, but then the scan fails
	return nil
}

// walk reads the folder path and those below it, in goroutines of their own while there is room, else itself.
func (s *scanner) walk(ctx context.Context, c *classScan, path string, up *folder) error {
	defer c.todo.Done()
	f, err := s.read(ctx, path, up)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.folders = append(c.folders, f)
	c.mu.Unlock()
	for _, name := range f.below {
		c.todo.Add(1)
		down := func() error { return s.walk(ctx, c, path+"/"+name, f) }
		if s.group.TryGo(down) {
			continue
		}
		if err := down(); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) noClasses(ctx context.Context, top *folder) error {
	if len(top.pictures) == 0 {
		if says := findForeign(ctx, s.root); says != "" {
			return fmt.Errorf("%w: it holds no picture and no folder, and %s", ErrLayout, says)
		}
		if _, remote := s.root.(interface{ Origin() string }); remote {
			return fmt.Errorf("%w: nothing lies below it on the server that is a picture or a folder: look at how its name is written", ErrLayout)
		}
		return fmt.Errorf("%w: it holds no picture and no folder; pictures of classes lie in a folder for each: <root>/<class>/<picture>", ErrLayout)
	}
	return FlatFolder(len(top.pictures), top.name(top.pictures[0]))
}

// FlatFolder is the error about a folder whose pictures lie in it directly, where Folder.Flat is not set.
func FlatFolder(pictures int, first []byte) error {
	return fmt.Errorf("%w: %d pictures, %s the first, lie in it directly; each class needs a folder of its own: "+
		"<root>/<class>/<picture>", ErrLayout, pictures, first)
}

// EmptyClasses is the error about classes without a picture, where Folder.Empty is not set.
func EmptyClasses(names []string) error {
	const most = 5
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return fmt.Errorf("%w: no picture (%s) in the folder %s%s; every folder of the root is a class, remove those that are not",
		ErrLayout, strings.Join(endings[:], " "), strings.Join(names, ", "), more)
}

// progress counts samples and tells them in order.
type progress struct {
	mu      sync.Mutex
	samples int
	told    int
	report  func(int)
}

func (p *progress) add(n int) {
	const step = 4096
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples += n
	if p.samples-p.told >= step {
		p.told = p.samples
		p.report(p.samples)
	}
}

func (p *progress) last() { p.report(p.samples) }

// digest is that of a class; see package manifest.
func (c *classScan) digest() [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte("feedwater class 1\n"))
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(c.name)))
	h.Write(append(b, c.name...))
	for _, f := range c.folders {
		below := []byte(f.path[len(c.name):])
		if len(below) > 0 {
			below = append(below[1:], '/')
		}
		for _, p := range f.pictures {
			name := f.name(p)
			b = binary.LittleEndian.AppendUint32(b[:0], uint32(len(below)+len(name)))
			b = append(append(b, below...), name...)
			h.Write(binary.LittleEndian.AppendUint64(b, uint64(p.size)))
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}
