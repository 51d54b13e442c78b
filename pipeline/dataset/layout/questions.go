package layout

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Questions are those that a scan has asked the file system and that it has not answered. The zero value is ready. Its methods may
// be called by many goroutines at once; nil notes nothing.
type Questions struct {
	mu   sync.Mutex
	open func() (store.Store, error) // of the place
	all  map[*Question]struct{}
}

// Question is about a directory below the root: that it is opened, that all its entries are read, or what some entries of a part of them are.
type Question struct {
	questions *Questions
	dir       string
	list      bool
	part      *part
	entries   []entry
}

// About notes how the place that is asked about is opened.
func (q *Questions) About(open func() (store.Store, error)) {
	if q != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.open = open
	}
}

// Ask notes a question about a directory, until End.
func (q *Questions) Ask(dir string, list bool) *Question {
	x := &Question{questions: q, dir: dir, list: list}
	x.begin(nil, nil)
	return x
}

// begin notes that entries of a part are asked about, until End.
func (x *Question) begin(p *part, entries []entry) {
	q := x.questions
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	x.part, x.entries = p, entries
	if q.all == nil {
		q.all = map[*Question]struct{}{}
	}
	q.all[x] = struct{}{}
}

// End notes that the question was answered.
func (x *Question) End() {
	if q := x.questions; q != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.all, x)
	}
}

// Again returns a function that asks once more what is not answered now. It returns nil when the file system has answered all of that, whatever it
// said about what lies there, and else its error.
func (q *Questions) Again() func() error {
	open, all := q.unanswered()
	return func() error {
		r, err := open()
		if err != nil {
			return trouble(err)
		}
		defer func() { _ = r.Close() }()
		for _, a := range all {
			if err := trouble(a.ask(r)); err != nil {
				return err
			}
		}
		return nil
	}
}

// again is a question to be asked once more: a copy, whatever becomes of the first one.
type again struct {
	dir   string
	list  bool
	names []string
}

// unanswered are the questions that are not answered now, and how what they are about is opened.
func (q *Questions) unanswered() (open func() (store.Store, error), all []again) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for x := range q.all {
		a := again{dir: x.dir, list: x.list}
		for i := range x.entries {
			a.names = append(a.names, string(x.part.name(&x.entries[i])))
		}
		all = append(all, a)
	}
	return q.open, all
}

func (a *again) ask(r store.Store) error {
	d, err := r.OpenDirectory(context.Background(), a.dir, make([]byte, 32<<10))
	if err != nil {
		return err
	}
	defer d.Close()
	for a.list && err == nil {
		_, _, err = d.Next()
	}
	for _, name := range a.names {
		if _, wrong := d.Stat([]byte(name)); trouble(wrong) != nil {
			return wrong
		}
	}
	return err
}

// trouble is an error that says nothing about what lies in a file system, but about the file system itself.
func trouble(err error) error {
	for _, answer := range []error{io.EOF, fs.ErrNotExist, fs.ErrPermission, store.ErrLeadsOut} {
		if errors.Is(err, answer) {
			return nil
		}
	}
	if store.LeadsNowhere(err) {
		return nil
	}
	return err
}
