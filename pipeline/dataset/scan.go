package dataset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// scanner reads a data set's directories, several at once. It holds the found names of a few classes at a time: those whose
// turn in label order has not come yet.
type scanner struct {
	root     *root
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

func newScanner(r *root, o Options) *scanner {
	s := &scanner{root: r, lookers: newLookers(&o), progress: progress{report: o.Progress}}
	s.buffers.New = func() any { b := make([]byte, 32<<10); return &b }
	return s
}

// scan makes the manifest of the data set at path.
func scan(ctx context.Context, r *root, path string, o Options) ([]byte, error) {
	b := newBuilder(o.now().UnixNano())
	s := newScanner(r, o)
	top, err := s.read(ctx, "", nil) // its folders are the classes
	if err != nil {
		return nil, err
	}
	b.directory(path, top.attributes)
	if len(top.below) == 0 && len(top.pictures) > 0 && o.Flat {
		return s.flat(ctx, b)
	}
	if len(top.below) == 0 {
		return nil, noClasses(top)
	}
	var empty []string
	err = s.classes(ctx, top, o.Readers, func(c *classScan) {
		if c.samples() == 0 {
			empty = append(empty, c.name)
		}
		b.class(c)
	})
	if err != nil {
		return nil, err
	}
	if len(empty) > 0 && (!o.Empty || len(empty) == len(top.below)) {
		return nil, emptyClasses(empty)
	}
	s.progress.last()
	return b.manifest(), nil
}

// flat makes the manifest of a folder whose pictures lie in it directly.
func (s *scanner) flat(ctx context.Context, b *builder) ([]byte, error) {
	f, err := s.read(ctx, "", &folder{})
	if err != nil {
		return nil, err
	}
	c := &classScan{folders: []*folder{f}}
	c.sha256 = c.digest()
	b.class(c)
	s.progress.last()
	return b.manifest(), nil
}

// classes hands every class to take, in label order, one at a time. At most readers directories are read at once, and at most
// twice as many classes are under way.
func (s *scanner) classes(parent context.Context, top *folder, readers int, take func(*classScan)) error {
	group, ctx := errgroup.WithContext(parent)
	s.group = group
	group.SetLimit(readers)
	begun := make(chan chan *classScan, readers)
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		for done := range begun {
			select {
			case c := <-done:
				take(c)
			case <-ctx.Done():
			}
		}
	}()
	for _, name := range top.below {
		if ctx.Err() != nil {
			break
		}
		done := make(chan *classScan, 1)
		begun <- done
		group.Go(func() error { return s.class(ctx, name, top, done) })
	}
	close(begun)
	<-taken
	if err := group.Wait(); err != nil {
		return err
	}
	return parent.Err() // a cancelled scan left classes out, even where no reader noticed
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

func noClasses(top *folder) error {
	if len(top.pictures) == 0 {
		return fmt.Errorf("%w: it holds no picture and no folder; pictures of classes lie in a folder for each: <root>/<class>/<picture>", ErrLayout)
	}
	return flat(len(top.pictures), top.name(top.pictures[0]))
}

func flat(pictures int, first []byte) error {
	return fmt.Errorf("%w: %d pictures, %s the first, lie in it directly; each class needs a folder of its own: "+
		"<root>/<class>/<picture>", ErrLayout, pictures, first)
}

func emptyClasses(names []string) error {
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
