package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// List is the layout of a list of files: a table of paths and labels, in the order of its lines. Paths are below the
// folder that the list lies in. Labels are whole numbers, or names, which are then classes in sorted order: see labels.
type List struct {
	// Name of the list, a path below the folder, that ends in .csv, .tsv or .jsonl.
	Name string
	// Format is one of ListFormats; empty: as the name ends.
	Format string
	// Root is the folder's absolute path: what paths in the list may begin with.
	Root string
	// Table, if set, is the path of the list, which lies elsewhere and never changes: lines of JSON objects. Name is then what it is called, and its
	// lines are counted as rows, from 0 on.
	Table string
	Choice
}

// ListFormats are the formats of lists, as their names end. Not to be changed.
var ListFormats = []string{"csv", "tsv", "jsonl"}

// FormatOfList is the format of a list, by its name.
func FormatOfList(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
}

// IsList reports whether a name is that of a list.
func IsList(name string) bool { return slices.Contains(ListFormats, FormatOfList(name)) }

// Form implements Layout.
func (l List) Form() manifest.Form { return manifest.Labelled.WithValues(len(l.Values)) }

// row is a line of a list.
type row struct {
	line     int
	number   int // of rows before it
	path     string
	label    string
	labelled bool
	quoted   bool // the label is a string of JSON
	// className, if set, is the name of the next class, in place of a file.
	className string
	values    []string
	span      *byteRange // of the file; nil: all of it
	heading   string     // what to say of it if the list cannot be read: it may be no file, but names of columns
}

// rowReader reads lines; io.EOF behind the last.
type rowReader interface{ next() (row, error) }

// Scan implements Layout. It reads the list twice, and asks for the size and time of each file in it, on servers by
// listing folders where it can. Of each line it keeps 8 bytes, to find paths that come twice, and see mostListed.
func (l List) Scan(ctx context.Context, from store.Store, o Options, to *manifest.Builder) error {
	labels, a, err := l.labels(ctx, from)
	if err == nil {
		err = l.scan(ctx, from, o, to, labels, a)
	}
	return labels.explainHeading(err)
}

func (l List) scan(ctx context.Context, from store.Store, o Options, to *manifest.Builder, labels *labels, a store.Attributes) error {
	if l.Table == "" {
		to.Watch(l.Name, a)
	}
	if err := watchServer(ctx, from, to); err != nil {
		return err
	}
	l.nameValues(to)
	s := &listScan{list: l, from: from, options: o, to: to, labels: labels, progress: progress{report: o.Progress}}
	if labels.files.folders != nil {
		s.listing = &folderListing{from: from, questions: o.Questions, named: labels.files, found: map[string]store.Attributes{}}
	}
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

// watchServer has what a list names on a server looked at again at each opening, as class folders are there: nothing else
// tells that an object was replaced.
func watchServer(ctx context.Context, from store.Store, to *manifest.Builder) error {
	if from.Reads() == 0 {
		return nil
	}
	a, err := from.Stat(ctx, "")
	if err == nil {
		to.Watch("", a)
	}
	return err
}

// isShown reports whether messages may show what the list says: it is one by its name, or a table, which is its trainer's. Any other file
// may be named by layout=, and what that holds is told to nobody.
func (l List) isShown() bool { return l.Table != "" || IsList(l.Name) }

// show is a text of the list for messages, by a verb of fmt.
func (l List) show(verb, text string) string {
	if !l.isShown() {
		return fmt.Sprintf("(%d bytes that are not shown)", len(text))
	}
	return fmt.Sprintf(verb, text)
}

// where names a line of the list.
func (l List) where(r row) string {
	if l.Table != "" {
		return fmt.Sprintf("%s: row %d", l.Name, r.number)
	}
	return fmt.Sprintf("%s: line %d", l.Name, r.line)
}

// openTable begins to read a list that lies elsewhere.
func (l List) openTable(ctx context.Context) (rowReader, func(), error) {
	f, err := os.Open(l.Table)
	if err != nil {
		return nil, nil, err
	}
	rows := newJSONReader(l, &cancelledReader{ctx, f})
	rows.asWritten = true
	return rows, func() { _ = f.Close() }, nil // it was read
}

// cancelledReader ends with a context.
type cancelledReader struct {
	ctx  context.Context
	from io.Reader
}

func (c *cancelledReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.from.Read(p)
}

// open begins to read the list.
func (l List) open(ctx context.Context, from store.Store) (rowReader, store.Attributes, error) {
	o, a, err := openObject(ctx, from, l.Name)
	if err != nil {
		return nil, a, err
	}
	format := l.Format
	if format == "" {
		format = FormatOfList(l.Name)
	}
	text, err := readText(l.Name, o)
	if err != nil {
		return nil, a, err
	}
	if format == "jsonl" {
		return newJSONReader(l, text), a, nil
	}
	comma := ','
	if format == "tsv" {
		comma = '\t'
	}
	rows, err := newTableReader(l, text, comma)
	return rows, a, err
}

// each reads all rows.
func (l List) each(ctx context.Context, from store.Store, take func(row) error) (a store.Attributes, err error) {
	var rows rowReader
	if l.Table != "" {
		var end func()
		if rows, end, err = l.openTable(ctx); err == nil {
			defer end()
		}
	} else {
		rows, a, err = l.open(ctx, from)
	}
	for number := 0; err == nil; {
		var r row
		if r, err = rows.next(); err != nil {
			break
		}
		r.number = number
		if err = take(r); r.className == "" {
			number++
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return a, err
}

// labels reads the list for its labels, and checks its paths.
func (l List) labels(ctx context.Context, from store.Store) (*labels, store.Attributes, error) {
	found := &labels{numbers: true, classes: map[string]*classCount{}, files: newNamedFiles(from)}
	a, err := l.each(ctx, from, func(r row) error {
		if r.className != "" {
			return found.name(l, r)
		}
		if r.heading != "" {
			found.heading = r.heading
		}
		key, err := l.key(r)
		if err != nil {
			return err
		}
		if r.span != nil && l.Table != "" { // of one file in many rows
			return found.add(l, r)
		}
		if found.files.add(key) {
			return wrong("%s: %s is in the list twice", l.where(r), l.show("%.200q", r.path))
		}
		return found.add(l, r)
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
		return "", wrong("%s has no path", l.where(r))
	case path.IsAbs(key) || key == "." || key == ".." || strings.HasPrefix(key, "../"):
		return "", wrong("%s: %s leads out of the folder of the list", l.where(r), l.show("%.200q", r.path))
	case len(key) > manifest.MaxKeyBytes || strings.ContainsRune(key, 0):
		return "", wrong("%s: %s is no path", l.where(r), l.show("%.200q", r.path))
	}
	return key, nil
}

// listScan adds the samples of a list.
type listScan struct {
	list     List
	from     store.Store
	options  Options
	to       *manifest.Builder
	labels   *labels
	listing  *folderListing // nil: of files of this machine
	progress progress
}

// windowRows is how many files are asked about before their samples are added.
const windowRows = 4096

// samples reads the list, and asks about the files of many lines at once.
func (s *listScan) samples(ctx context.Context) error {
	window := make([]row, 0, windowRows)
	_, err := s.list.each(ctx, s.from, func(r row) error {
		if r.className != "" {
			return nil
		}
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
	s.listFolders(ctx, rows)
	samples, errs := make([]manifest.Sample, len(rows)), make([]error, len(rows))
	var asking sync.WaitGroup
	askers := s.options.Readers
	if s.from.Reads() > 0 { // whose time passes on the way
		askers = max(askers, s.options.Stats)
	}
	for first := range min(askers, len(rows)) {
		asking.Go(func() {
			for i := first; i < len(rows) && ctx.Err() == nil; i += askers {
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

// listFolders lists the folders of the files of rows, where that is quicker than to ask about each.
func (s *listScan) listFolders(ctx context.Context, rows []row) {
	if s.listing == nil {
		return
	}
	keys := make([]string, 0, len(rows))
	for _, r := range rows {
		if key, err := s.list.key(r); err == nil { // else sample tells
			keys = append(keys, key)
		}
	}
	s.listing.list(ctx, keys)
}

// sample is that of a row.
func (s *listScan) sample(ctx context.Context, r row) (manifest.Sample, error) {
	key, err := s.list.key(r)
	if err != nil {
		return manifest.Sample{}, err
	}
	if r.span != nil && s.list.Table != "" {
		return manifest.Sample{}, wrong("%s has %q, and rows before have none", s.list.where(r), rangeMember)
	}
	a, known := s.listing.take(key)
	if !known {
		if a, err = s.list.stat(ctx, s.from, s.options, r, key); err != nil {
			return manifest.Sample{}, err
		}
	}
	label, known := s.labels.of(r)
	if !known {
		return manifest.Sample{}, wrong("%s: the list was written while it was read", s.list.where(r))
	}
	return manifest.Sample{
		Key: []byte(key), Label: label, Size: a.Size, ModifiedNanos: a.Modified, Version: []byte(a.Version), Values: r.held(),
	}, nil
}

// WhyUnlabelled says why no line has a label, for people.
func (l List) WhyUnlabelled(ctx context.Context, from store.Store, _ string) string {
	said := "no column is called " + strings.Join(labelColumns, ", ")
	if l.Table != "" {
		return ""
	}
	rows, _, err := l.open(ctx, from)
	table, ok := rows.(*tableReader)
	switch {
	case err != nil:
		return ""
	case !ok:
		return "no object has one of " + strings.Join(labelColumns, ", ")
	case table.label >= 0:
		return "the column of labels is empty"
	case table.first != nil:
		return "each line has one field"
	case !l.isShown():
		return said
	}
	return said + "; there are " + namesOf(table.head, true)
}
