package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/parquet"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Parquet is the layout of Parquet files that have pictures in a column, as the Hugging Face Hub has them. Samples come
// in the order of the files, and of rows in them.
type Parquet struct {
	// Pattern names the files; see match. Empty: all in the folder.
	Pattern string
	// Image, and the label and values of Choice, are the names of columns, with dots between their levels. Empty: those that the file says, or
	// that are called so.
	Image string
	Choice
}

// Form implements Layout.
func (l Parquet) Form() manifest.Form { return l.formOfHeld() }

// Scan implements Layout. It reads footers, labels, and of pictures that are not compressed only how long they are.
func (l Parquet) Scan(ctx context.Context, from store.Store, o Options, to *manifest.Builder) error {
	names, err := l.names(ctx, from, to)
	if err != nil {
		return err
	}
	classes, err := l.classes(ctx, from, names, o)
	if err != nil {
		return explainMissing(ctx, from, l.Pattern, names, err)
	}
	l.nameValues(to)
	sink := &tableSink{to: to, classes: classes, progress: progress{report: o.Progress}}
	err = inOrder(ctx, names, o.Readers, func(ctx context.Context, name string) (*tableFile, error) {
		o.Slow()
		return l.readRows(ctx, from, name, classes, &o)
	}, sink.take)
	if err != nil {
		return explainMissing(ctx, from, l.Pattern, names, err)
	}
	if to.Samples() == 0 {
		return wrong("%s: %d Parquet files and no row in them", l.Pattern, len(names))
	}
	classes.tell(to)
	sink.progress.last()
	return nil
}

// names are those of the files.
func (l Parquet) names(ctx context.Context, from store.Store, to *manifest.Builder) ([]string, error) {
	if l.Pattern != "" {
		return match(ctx, from, l.Pattern, to)
	}
	names, err := match(ctx, from, "*"+parquetEnding, to)
	if err != nil {
		return nil, err
	}
	first, parts := cutSplit(names[0])
	for _, name := range names[1:] {
		if other, _ := cutSplit(name); parts && other != first {
			return nil, wrong("%s and %s are of two splits: name one, as %s-*%s", names[0], name, first, parquetEnding)
		}
	}
	return names, nil
}

// cutSplit is the name of the split that a file is of, as the Hub calls them: "train-00000-of-00042.parquet".
func cutSplit(name string) (split string, ok bool) {
	before, _, ok := strings.Cut(name, "-of-")
	at := strings.LastIndexByte(before, '-')
	if !ok || at < 0 {
		return name, false
	}
	return before[:at], true
}

// parquetEnding is how the names of Parquet files end.
const parquetEnding = ".parquet"

// IsParquet reports whether a name is that of a Parquet file.
func IsParquet(name string) bool { return strings.HasSuffix(strings.ToLower(name), parquetEnding) }

// HoldsParquet reports whether a folder is one of Parquet files: it has some, and neither a picture nor a folder.
func HoldsParquet(ctx context.Context, from store.Store) bool {
	d, err := from.OpenDirectory(ctx, "", make([]byte, 32<<10))
	if err != nil {
		return false
	}
	defer d.Close()
	found := false
	for {
		name, kind, err := d.Next()
		switch {
		case err != nil:
			return found && errors.Is(err, io.EOF)
		case len(name) > 0 && name[0] == '.': // downloads leave folders of their own
		case kind == store.KindFolder || isPicture(name):
			return false
		case IsParquet(string(name)):
			found = true
		}
	}
}

// tableFile is what was found in a Parquet file.
type tableFile struct {
	name       string
	attributes store.Attributes
	rows       []tableRow
	labels     int // rows with one
	parts      []tablePart
}

// tablePart is a page that has to be unpacked.
type tablePart struct {
	part parquet.Part
	size int64 // of its values
}

// tableRow is a picture. part is its place in parts plus one; 0: it lies in the file as it is.
type tableRow struct {
	label, offset, size int64
	part                int
	values              []manifest.SampleValue
}

// readRows finds the rows of a file.
func (l Parquet) readRows(ctx context.Context, from store.Store, name string, c *tableClasses, o *Options) (*tableFile, error) {
	f, err := l.open(ctx, from, name)
	if err != nil {
		return nil, err
	}
	if err := c.check(name, f); err != nil {
		return nil, err
	}
	t := &tableFile{name: name, attributes: f.attributes}
	locator := parquet.Locator{File: f.file, Column: f.columns.image}
	parts := map[*parquet.Part]int{}
	locator.Unpacked = func(p *parquet.Part, v *parquet.Packed) error {
		switch {
		case o.Unpacked == nil && len(v.Ends) == 0: // the dictionary of a column that has nothing
			return nil
		case o.Unpacked == nil:
			return tooPacked(p, v)
		}
		t.parts = append(t.parts, tablePart{*p, int64(len(v.Values))})
		parts[p] = len(t.parts)
		return o.Unpacked(ctx, &f.object.object, p, v)
	}
	locator.Tell = func(_ int64, v parquet.Found) error {
		t.rows = append(t.rows, tableRow{offset: v.Offset, size: v.Size, part: parts[v.Part]})
		return ctx.Err()
	}
	if err := locator.Locate(); err != nil {
		return nil, about(name, l.nullImage(f.columns, err))
	}
	err = l.label(t, f, c)
	for i := range l.Values {
		if err == nil {
			err = l.value(ctx, t, f, i)
		}
	}
	if err != nil {
		return nil, about(name, err)
	}
	return t, nil
}

// value reads a further column of a file's rows: numbers as they are written, else bytes.
func (l Parquet) value(ctx context.Context, t *tableFile, f *openedParquet, i int) error {
	column := f.columns.values[i]
	row := 0 // of as many as there are pictures: see Scalars
	return f.file.Scalars(column, func(v parquet.Scalar) error {
		data := []byte(v.Text)
		if column.Kind == parquet.Int {
			data = strconv.AppendInt(nil, v.Int, 10)
		}
		switch {
		case v.Null:
			return wrong("row %d has nothing in %s", row, column)
		case len(data) > manifest.MaxValueBytes:
			return wrong("row %d: %s has %d bytes, at most %d", row, column, len(data), manifest.MaxValueBytes)
		default:
			t.rows[row].values = append(t.rows[row].values, manifest.SampleValue{Size: int64(len(data)), Data: data})
		}
		row++
		return ctx.Err()
	})
}

// tooPacked is the error about pictures in pages that are compressed, where there is no place to unpack them to.
func tooPacked(p *parquet.Part, v *parquet.Packed) error {
	return wrong("its pictures are in pages that %s has compressed: to read one, %s have to be read and unpacked, where the picture has %s. "+
		"Name a folder of a local disk that they are unpacked to once, by --read-cache (of a Loader without nodes by FEEDWATER_READ_CACHE), or %s",
		p.Codec(), inBytes(p.Length), inBytes(int64(len(v.Values)/len(v.Ends))), parquet.Rewrite)
}

// inBytes is a number of bytes for people.
func inBytes(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// nullImage is the error about a row without a picture.
func (l Parquet) nullImage(c *tableColumns, err error) error {
	var null *parquet.NullError
	if !errors.As(err, &null) {
		return err
	}
	if c.path != nil {
		return wrong("row %d has no picture in %s: if it has the picture's path in %s, name the files by a list, as a .csv", null.Row, c.image, c.path)
	}
	return wrong("row %d has no picture in %s", null.Row, c.image)
}

// label reads the labels of a file's rows.
func (l Parquet) label(t *tableFile, f *openedParquet, c *tableClasses) error {
	if f.columns.label == nil {
		return nil
	}
	row := 0
	return f.file.Scalars(f.columns.label, func(v parquet.Scalar) error {
		row++
		label, labelled, err := c.of(v)
		if err != nil {
			return wrong("row %d: %v", row-1, err)
		}
		if labelled {
			t.labels++
			t.rows[row-1].label = label
		}
		switch {
		case labelled && t.labels < row:
			return wrong("row 0 has no label in %s, and row %d has one", f.columns.label, row-1)
		case !labelled && t.labels > 0:
			return wrong("row %d has no label in %s, and others have one", row-1, f.columns.label)
		}
		return nil
	})
}

// openedParquet is a file that is read.
type openedParquet struct {
	file       *parquet.File
	columns    *tableColumns
	object     *object
	attributes store.Attributes
}

// open opens a file, reads its footer and finds its columns. Errors name the file.
func (l Parquet) open(ctx context.Context, from store.Store, name string) (*openedParquet, error) {
	if says := describeForeign(name); says != "" {
		return nil, wrong("%s", says)
	}
	o, a, err := openObject(ctx, from, name)
	if err != nil {
		return nil, err
	}
	f, err := parquet.Open(o, a.Size)
	if err != nil {
		return nil, about(name, err)
	}
	columns, err := l.choose(f)
	if err != nil {
		return nil, about(name, err)
	}
	return &openedParquet{f, columns, o, a}, nil
}

// about names the file in an error.
func about(name string, err error) error {
	var format *parquet.FormatError
	switch {
	case errors.As(err, new(*store.ChangedError)):
		return err
	case errors.As(err, &format) || errors.Is(err, ErrLayout):
		return wrong("%s: %v", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// tableSink adds files to a manifest.
type tableSink struct {
	to       *manifest.Builder
	classes  *tableClasses
	progress progress
	before   *tableFile // with rows
	labelled bool
}

func (k *tableSink) take(t *tableFile) error {
	if len(t.rows) > 0 {
		if labelled := t.labels > 0; k.before != nil && labelled != k.labelled {
			return wrong("%s and %s: rows of one have labels, and those of the other have none", k.before.name, t.name)
		}
		k.before, k.labelled = t, t.labels > 0
		if !k.labelled {
			k.to.Unlabel()
		}
	}
	k.to.Watch(t.name, t.attributes)
	plain := k.to.Object(t.name, t.attributes)
	first := plain + 1
	for i := range t.parts {
		p := &t.parts[i]
		k.to.Part(t.name, t.attributes, p.part.String(), p.size)
	}
	key := append([]byte(t.name), '/')
	stem := len(key)
	for i, r := range t.rows {
		key = strconv.AppendInt(key[:stem], int64(i), 10)
		s := manifest.Sample{Key: key, Label: r.label, Size: r.size, Object: plain, Offset: r.offset, Values: r.values}
		if r.part > 0 {
			s.Object = first + r.part - 1
		}
		if k.labelled {
			k.classes.count(r.label)
		}
		if err := k.to.Sample(&s); err != nil {
			return err
		}
	}
	k.progress.add(len(t.rows))
	t.rows, t.parts = nil, nil
	return nil
}
