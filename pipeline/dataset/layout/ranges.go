package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Ranges is the layout of a table whose rows name ranges of files: pictures that lie as they are in files of a format of
// their own, of which whoever made the table knows where.
type Ranges struct{ List }

// rangeMember is the member of a row that says where its picture begins in its file, and how many bytes it has.
const rangeMember = "range"

// byteRange is a range of a file.
type byteRange struct{ offset, length int64 }

// HasRanges reports whether the rows of a table name ranges of files, as the first one does. Errors of the table are those of its scan.
func HasRanges(ctx context.Context, table string) (bool, error) {
	rows, end, err := List{Table: table}.openTable(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	for {
		r, err := rows.next()
		if errors.Is(err, io.EOF) || errors.Is(err, ErrLayout) {
			return false, nil
		}
		if err != nil || r.className == "" {
			return r.span != nil, err
		}
	}
}

// Form implements Layout.
func (l Ranges) Form() manifest.Form { return l.formOfHeld() }

// Scan implements Layout. It reads the table twice, and asks once about each file in it.
func (l Ranges) Scan(ctx context.Context, from store.Store, o Options, to *manifest.Builder) error {
	labels, _, err := l.labels(ctx, from)
	if err != nil {
		return err
	}
	l.nameValues(to)
	s := &rangeScan{list: l.List, from: from, options: o, to: to, labels: labels, files: map[string]rangeFile{}}
	s.progress.report = o.Progress
	if _, err := l.each(ctx, from, func(r row) error { return s.add(ctx, r) }); err != nil {
		return err
	}
	labels.tell(to)
	s.progress.last()
	return nil
}

// rangeFile is a file that ranges lie in.
type rangeFile struct {
	object int
	size   int64
}

// rangeScan adds the samples of a table.
type rangeScan struct {
	list     List
	from     store.Store
	options  Options
	to       *manifest.Builder
	labels   *labels
	files    map[string]rangeFile
	progress progress
}

// add adds the sample of a row.
func (s *rangeScan) add(ctx context.Context, r row) error {
	if r.className != "" {
		return nil
	}
	if r.span == nil {
		return wrong("%s has no %q, as rows before have", s.list.where(r), rangeMember)
	}
	name, err := s.list.key(r)
	if err != nil {
		return err
	}
	file, err := s.file(ctx, r, name)
	if err != nil {
		return err
	}
	span := *r.span
	if span.offset < 0 || span.length < 1 || span.length > file.size || span.offset > file.size-span.length {
		return wrong("%s: %d bytes from %d on are not in %.200s, which has %d", s.list.where(r), span.length, span.offset, name, file.size)
	}
	key := fmt.Appendf(nil, "%s/%d-%d", name, span.offset, span.length)
	label, known := s.labels.of(r)
	switch {
	case !known:
		return wrong("%s: the list was written while it was read", s.list.where(r))
	case len(key) > manifest.MaxKeyBytes:
		return wrong("%s: %.200q is no path", s.list.where(r), r.path)
	}
	s.progress.add(1)
	sample := manifest.Sample{Key: key, Label: label, Size: span.length, Object: file.object, Offset: span.offset, Values: r.held()}
	return s.to.Sample(&sample)
}

// held are the values of a row, which the manifest holds.
func (r *row) held() (all []manifest.SampleValue) {
	for _, v := range r.values {
		all = append(all, manifest.SampleValue{Size: int64(len(v)), Data: []byte(v)})
	}
	return all
}

// file is that of a name, which is asked about when it comes first.
func (s *rangeScan) file(ctx context.Context, r row, name string) (rangeFile, error) {
	if f, known := s.files[name]; known {
		return f, nil
	}
	a, err := s.list.stat(ctx, s.from, s.options, r, name)
	if err != nil {
		return rangeFile{}, err
	}
	s.to.Watch(name, a)
	f := rangeFile{s.to.Object(name, a), a.Size}
	s.files[name] = f
	return f, nil
}

// adviceOn says what is odd about the path of a file that is not there.
func adviceOn(name string) string {
	switch {
	case !utf8.ValidString(name):
		return ": its name is no UTF-8, as where the list is saved in another encoding"
	case strings.Contains(name, `\`):
		return `: paths are written with /, and this one has a \`
	}
	return ""
}

// stat asks about the file of a row.
func (l List) stat(ctx context.Context, from store.Store, o Options, r row, name string) (store.Attributes, error) {
	question := o.Questions.Ask(path.Dir(name), false)
	o.Slow()
	a, err := from.Stat(ctx, name)
	question.End()
	switch {
	case store.LeadsNowhere(err):
		return a, wrong("%s: there is no file %s%s", l.where(r), l.show("%.200s", name), adviceOn(name))
	case err != nil && !l.isShown():
		return a, &rewordedError{fmt.Sprintf("%s: it cannot be asked for", l.where(r)), err} // the cause names the file
	case err != nil:
		return a, fmt.Errorf("%s: %w", l.where(r), &fs.PathError{Op: "stat", Path: name, Err: err})
	case a.Kind != store.KindFile:
		return a, wrong("%s: %s is %v", l.where(r), l.show("%.200s", name), store.ErrNoFile)
	}
	return a, nil
}
