package dataset

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
)

// Questions are those that Open has asked the file system of the data set and that it has not answered. The zero value is ready. Its methods may
// be called by many goroutines at once; nil notes nothing.
type Questions struct {
	mu      sync.Mutex
	path    string // of the root
	beneath string // as in Options
	all     map[*question]struct{}
}

// question is about a directory below the root: that it is opened, that all its entries are read, or what some entries of a part of them are.
type question struct {
	questions *Questions
	dir       string
	list      bool
	part      *part
	entries   []entry
}

// about notes which folder is asked about.
func (q *Questions) about(path, beneath string) {
	if q != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.path, q.beneath = path, beneath
	}
}

// ask notes a question about a directory, until end.
func (q *Questions) ask(dir string, list bool) *question {
	x := &question{questions: q, dir: dir, list: list}
	x.begin(nil, nil)
	return x
}

// begin notes that entries of a part are asked about, until end.
func (x *question) begin(p *part, entries []entry) {
	q := x.questions
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	x.part, x.entries = p, entries
	if q.all == nil {
		q.all = map[*question]struct{}{}
	}
	q.all[x] = struct{}{}
}

// end notes that the question was answered.
func (x *question) end() {
	if q := x.questions; q != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.all, x)
	}
}

// Again returns a function that asks once more what is not answered now. It returns nil when the file system has answered all of that, whatever it
// said about what lies there, and else its error.
func (q *Questions) Again() func() error {
	path, beneath, all := q.unanswered()
	return func() error {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return trouble(err)
		}
		r, err := openRoot(real, beneath)
		if err != nil {
			return trouble(err)
		}
		defer func() { _ = r.release() }()
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

// unanswered are the questions that are not answered now, and of which folder.
func (q *Questions) unanswered() (path, beneath string, all []again) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for x := range q.all {
		a := again{dir: x.dir, list: x.list}
		for i := range x.entries {
			a.names = append(a.names, string(x.part.name(&x.entries[i])))
		}
		all = append(all, a)
	}
	return q.path, q.beneath, all
}

func (a *again) ask(r *root) error {
	d, err := r.openDir(a.dir, make([]byte, 32<<10))
	if err != nil {
		return err
	}
	defer d.close()
	for a.list && err == nil {
		_, _, err = d.next()
	}
	for _, name := range a.names {
		if _, wrong := d.stat([]byte(name)); trouble(wrong) != nil {
			return wrong
		}
	}
	return err
}

// trouble is an error that says nothing about what lies in a file system, but about the file system itself.
func trouble(err error) error {
	for _, answer := range []error{io.EOF, fs.ErrNotExist, fs.ErrPermission, ErrLeadsOut} {
		if errors.Is(err, answer) {
			return nil
		}
	}
	if leadsNowhere(err) {
		return nil
	}
	return err
}
