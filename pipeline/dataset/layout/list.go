package layout

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// List is the layout of a list of files: a table of paths and labels, in the order of its lines. Paths are below the
// folder that the list lies in. Labels are whole numbers, or strings, which are then classes in sorted order.
type List struct {
	// Name of the list, a path below the folder, that ends in .csv, .tsv or .jsonl.
	Name string
	// Root is the folder's absolute path: what paths in the list may begin with.
	Root string
}

// IsList reports whether a name is that of a list.
func IsList(name string) bool {
	return slices.Contains([]string{".csv", ".tsv", ".jsonl"}, strings.ToLower(path.Ext(name)))
}

// Form implements Layout.
func (List) Form() manifest.Form { return manifest.Labelled }

// row is a line of a list.
type row struct {
	line     int
	path     string
	label    string
	labelled bool
}

// rowReader reads lines; io.EOF behind the last.
type rowReader interface{ next() (row, error) }

// Scan implements Layout. It reads the list twice, and asks for the size and time of each file in it. Of each line it
// keeps 8 bytes, to find paths that come twice.
func (l List) Scan(ctx context.Context, from store.Store, o Options, to *manifest.Builder) error {
	labels, a, err := l.labels(ctx, from)
	if err != nil {
		return err
	}
	to.Watch(l.Name, a)
	s := &listScan{list: l, from: from, options: o, to: to, labels: labels, progress: progress{report: o.Progress}}
	if err := s.samples(ctx); err != nil {
		return err
	}
	if to.Samples() == 0 {
		return wrong("%s names no file: each line has a path below its folder, and a label", l.Name)
	}
	labels.tell(to)
	s.progress.last()
	return nil
}

// open begins to read the list.
func (l List) open(ctx context.Context, from store.Store) (rowReader, store.Attributes, error) {
	o, a, err := openObject(ctx, from, l.Name)
	if err != nil {
		return nil, a, err
	}
	if strings.EqualFold(path.Ext(l.Name), ".jsonl") {
		return newJSONReader(l.Name, o), a, nil
	}
	comma := ','
	if strings.EqualFold(path.Ext(l.Name), ".tsv") {
		comma = '\t'
	}
	rows, err := newTableReader(l.Name, o, comma)
	return rows, a, err
}

// each reads all rows.
func (l List) each(ctx context.Context, from store.Store, take func(row) error) (store.Attributes, error) {
	rows, a, err := l.open(ctx, from)
	for err == nil {
		var r row
		if r, err = rows.next(); err == nil {
			err = take(r)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return a, err
}

// labels reads the list for its labels, and checks its paths.
func (l List) labels(ctx context.Context, from store.Store) (*labels, store.Attributes, error) {
	found := &labels{numbers: true, classes: map[string]*classCount{}}
	seed, seen := maphash.MakeSeed(), map[uint64]struct{}{}
	a, err := l.each(ctx, from, func(r row) error {
		key, err := l.key(r)
		if err != nil {
			return err
		}
		sum := maphash.String(seed, key)
		if _, twice := seen[sum]; twice {
			return wrong("%s: line %d: %.200q is in the list twice", l.Name, r.line, r.path)
		}
		seen[sum] = struct{}{}
		return found.add(l.Name, r)
	})
	found.sort()
	return found, a, err
}

// key is the path of a row below the folder.
func (l List) key(r row) (string, error) {
	key := r.path
	if below, ok := strings.CutPrefix(key, strings.TrimSuffix(l.Root, "/")+"/"); ok {
		key = below
	}
	key = path.Clean(key)
	switch {
	case r.path == "":
		return "", wrong("%s: line %d has no path", l.Name, r.line)
	case path.IsAbs(key) || key == "." || key == ".." || strings.HasPrefix(key, "../"):
		return "", wrong("%s: line %d: %.200q leads out of the folder that the list lies in, %s", l.Name, r.line, r.path, l.Root)
	case len(key) > manifest.MaxKeyBytes || strings.ContainsRune(key, 0):
		return "", wrong("%s: line %d: %.200q is no path", l.Name, r.line, r.path)
	}
	return key, nil
}

// labels of a list: numbers, names of classes, or none.
type labels struct {
	rows     int
	labelled bool
	numbers  bool // all are
	classes  map[string]*classCount
	names    []string
}

type classCount struct{ label, samples int }

// maxClasses is how many names of classes a list may have.
const maxClasses = 1 << 20

// add takes note of a row's label.
func (l *labels) add(list string, r row) error {
	if l.rows++; l.rows > 1 && l.labelled != r.labelled {
		return wrong("%s: line %d: a label is missing, here or in the lines before", list, r.line)
	}
	if l.labelled = r.labelled; !r.labelled {
		return nil
	}
	if l.numbers {
		_, err := strconv.ParseInt(r.label, 10, 64)
		l.numbers = err == nil
	}
	if c := l.classes[r.label]; c != nil {
		c.samples++
	} else if len(l.classes) < maxClasses {
		l.classes[strings.Clone(r.label)] = &classCount{samples: 1}
	} else if !l.numbers {
		return wrong("%s: line %d: more than %d classes", list, r.line, maxClasses)
	}
	return nil
}

// sort numbers the classes.
func (l *labels) sort() {
	if l.numbers {
		return
	}
	for name := range l.classes {
		l.names = append(l.names, name)
	}
	slices.SortFunc(l.names, compareNames[string])
	for i, name := range l.names {
		l.classes[name].label = i
	}
}

// of is the label of a row.
func (l *labels) of(r row) (int64, bool) {
	switch {
	case !l.labelled:
		return 0, true
	case l.numbers:
		n, err := strconv.ParseInt(r.label, 10, 64)
		return n, err == nil
	}
	c := l.classes[r.label]
	if c == nil { // the list was exchanged
		return 0, false
	}
	return int64(c.label), true
}

// tell adds the classes to a manifest, or that there are no labels.
func (l *labels) tell(to *manifest.Builder) {
	if !l.labelled {
		to.Unlabel()
	}
	for _, name := range l.names {
		to.Class(name, l.classes[name].samples, [32]byte{})
	}
}

// listScan adds the samples of a list.
type listScan struct {
	list     List
	from     store.Store
	options  Options
	to       *manifest.Builder
	labels   *labels
	progress progress
}

// windowRows is how many files are asked about before their samples are added.
const windowRows = 4096

// samples reads the list, and asks about the files of many lines at once.
func (s *listScan) samples(ctx context.Context) error {
	window := make([]row, 0, windowRows)
	_, err := s.list.each(ctx, s.from, func(r row) error {
		if window = append(window, r); len(window) < windowRows {
			return nil
		}
		err := s.add(ctx, window)
		window = window[:0]
		return err
	})
	if err != nil {
		return err
	}
	return s.add(ctx, window)
}

// add adds some lines.
func (s *listScan) add(ctx context.Context, rows []row) error {
	samples, err := s.ask(ctx, rows)
	if err != nil {
		return err
	}
	for i := range samples {
		if err := s.to.Sample(&samples[i]); err != nil {
			return err
		}
	}
	s.progress.add(len(samples))
	return nil
}

// ask asks about the files of rows, several at once. Of several errors it is the one of the first line.
func (s *listScan) ask(ctx context.Context, rows []row) ([]manifest.Sample, error) {
	samples, errs := make([]manifest.Sample, len(rows)), make([]error, len(rows))
	var asking sync.WaitGroup
	for first := range min(s.options.Readers, len(rows)) {
		asking.Go(func() {
			for i := first; i < len(rows) && ctx.Err() == nil; i += s.options.Readers {
				samples[i], errs[i] = s.sample(ctx, rows[i])
			}
		})
	}
	asking.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return samples, nil
}

// sample is that of a row.
func (s *listScan) sample(ctx context.Context, r row) (manifest.Sample, error) {
	key, err := s.list.key(r)
	if err != nil {
		return manifest.Sample{}, err
	}
	question := s.options.Questions.Ask(path.Dir(key), false)
	s.options.Slow()
	a, err := s.from.Stat(ctx, key)
	question.End()
	label, known := s.labels.of(r)
	switch {
	case store.LeadsNowhere(err):
		return manifest.Sample{}, wrong("%s: line %d: there is no file %.200s", s.list.Name, r.line, key)
	case err != nil:
		return manifest.Sample{}, fmt.Errorf("%s: line %d: %w", s.list.Name, r.line, &fs.PathError{Op: "stat", Path: key, Err: err})
	case a.Kind != store.KindFile:
		return manifest.Sample{}, wrong("%s: line %d: %.200s is %v", s.list.Name, r.line, key, store.ErrNoFile)
	case !known:
		return manifest.Sample{}, wrong("%s: line %d: the list was written while it was read", s.list.Name, r.line)
	}
	return manifest.Sample{Key: []byte(key), Label: label, Size: a.Size, ModifiedNanos: a.Modified, Version: []byte(a.Version)}, nil
}
