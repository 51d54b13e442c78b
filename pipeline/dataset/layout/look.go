package layout

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// part is some of a directory's entries, in the file system's order: those that may be samples or folders. It is filled by one goroutine, then
// looked at by several, then added to its folder by one.
type part struct {
	dir     string // below the root
	names   []byte
	entries []entry
	next    atomic.Int64   // the first entry that nobody looks at yet
	looking sync.WaitGroup // goroutines that look
}

// entry is a name, and what its file is once somebody has looked.
type entry struct {
	start, end uint32 // of the name in part.names
	kind       store.Kind
	look       bool // its kind, or its size and time, are asked for
	known      bool // the listing told them
	attributes store.Attributes
	err        error
}

const (
	// partEntries is how many entries a part has at most.
	partEntries = 4096
	// lookAtOnce is how many entries a goroutine takes at once.
	lookAtOnce = 8
)

func (p *part) name(e *entry) []byte { return p.names[e.start:e.end] }

func (p *part) clear() {
	p.names, p.entries = p.names[:0], p.entries[:0]
	p.next.Store(0)
}

// fill reads entries until the part is full; io.EOF tells that the directory has no more. Names that are neither samples nor folders are left
// out: isClass says that pictures are samples here, which they are not in the root.
func (p *part) fill(d store.Directory, isClass bool) error {
	p.clear()
	for len(p.entries) < partEntries {
		name, k, err := d.Next()
		if err != nil {
			return err
		}
		picture := isPicture(name)
		if !picture && k != store.KindFolder && k != store.KindUnknown {
			continue
		}
		start := len(p.names)
		p.names = append(p.names, name...)
		e := entry{start: uint32(start), end: uint32(len(p.names)), kind: k}
		e.look = k == store.KindUnknown || isClass && picture && k != store.KindFolder
		if e.look {
			e.attributes, e.known = d.Known()
			e.look = !e.known
		}
		p.entries = append(p.entries, e)
	}
	return nil
}

// lookers ask for the attributes of entries, as many at once as the storage takes with profit.
type lookers struct {
	pace      pace
	parts     sync.Pool // *part
	questions *Questions
	slow      func() // called before each question; tests make it last here
}

func newLookers(o *Options) *lookers {
	l := &lookers{pace: newPace(o.Stats), questions: o.Questions, slow: o.Slow}
	l.parts.New = func() any { return new(part) }
	return l
}

// one asks one question at a time, and nothing meanwhile.
func (l *lookers) one() bool { return l.pace.most == 1 }

// begin looks at a part in goroutines. part.looking ends when all has been looked at, or ctx has ended.
func (l *lookers) begin(ctx context.Context, d store.Directory, p *part) {
	l.pace.enter()
	p.looking.Go(func() { l.look(ctx, d, p) })
}

// look looks at entries until none is left that nobody looks at, and gets help while there is profit in it. The caller has entered the pace.
func (l *lookers) look(ctx context.Context, d store.Directory, p *part) {
	defer l.pace.leave()
	question := Question{questions: l.questions, dir: p.dir}
	for ctx.Err() == nil {
		end := int(p.next.Add(lookAtOnce))
		first := end - lookAtOnce
		if first >= len(p.entries) {
			return
		}
		entries := p.entries[first:min(end, len(p.entries))]
		question.begin(p, entries)
		asked := l.ask(d, p, entries)
		question.End()
		l.pace.note(asked)
		if end < len(p.entries) && l.pace.join() {
			p.looking.Go(func() { l.look(ctx, d, p) })
		}
	}
}

// ask fills in what the directory says of some entries, and returns how many there was a question for.
func (l *lookers) ask(d store.Directory, p *part, entries []entry) (asked int) {
	for i := range entries {
		e := &entries[i]
		if !e.look {
			continue
		}
		l.slow()
		e.attributes, e.err = d.Stat(p.name(e))
		asked++
	}
	return asked
}

// entries lists what is in an open directory: while one part of it is looked at, the next one is read. What is found, and the first error, are
// those of one question after the other.
func (s *scanner) entries(ctx context.Context, f *folder, d store.Directory) error {
	var before *part
	for {
		p, _ := s.lookers.parts.Get().(*part)
		p.dir = f.path
		question := s.lookers.questions.Ask(f.path, true)
		readErr := p.fill(d, f.up != nil)
		question.End()
		if readErr == nil && !s.lookers.one() {
			s.lookers.begin(ctx, d, p)
		} else {
			s.lookers.pace.enter()
			s.lookers.look(ctx, d, p)
		}
		if err := s.settle(ctx, f, before); err != nil {
			p.looking.Wait()
			return err
		}
		before = p
		if readErr == nil {
			continue
		}
		err := s.settle(ctx, f, p)
		if err == nil && !errors.Is(readErr, io.EOF) {
			err = readError(f, readErr)
		}
		return err
	}
}

// settle waits until a part has been looked at, and adds it to its folder; nil is none.
func (s *scanner) settle(ctx context.Context, f *folder, p *part) error {
	if p == nil {
		return ctx.Err()
	}
	defer s.lookers.parts.Put(p)
	p.looking.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	counted := len(f.pictures)
	for i := range p.entries {
		if err := f.settle(p.name(&p.entries[i]), &p.entries[i]); err != nil {
			return err
		}
	}
	if f.up != nil {
		s.progress.add(len(f.pictures) - counted)
	}
	return nil
}
