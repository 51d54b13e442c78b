package layout

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/parquet"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// tableClasses are the names of classes of Parquet files: those that the files say, or the texts of their labels.
type tableClasses struct {
	names   []string
	labels  map[string]int64 // of texts; nil: labels are numbers
	samples []int
	first   string        // the file that says so, the first that has rows
	columns *tableColumns // of that file
}

// check returns an error where another file with rows has its pictures or labels in columns of other names, or says other classes.
func (c *tableClasses) check(name string, f *openedParquet) error {
	if f.file.Rows() == 0 {
		return nil
	}
	first, other := c.columns, f.columns
	err := checkColumn("pictures", "image", c.first, first.picture(), name, other.picture())
	if err == nil && first.label != nil && other.label != nil {
		err = checkColumn("labels", "label", c.first, first.label.String(), name, other.label.String())
	}
	switch {
	case err != nil:
		return err
	case other.label == nil || c.labels != nil && other.label.Kind == parquet.String:
		return nil
	case c.labels != nil || other.label.Kind == parquet.String:
		return wrong("%s and %s: the labels of one are texts, and those of the other numbers", c.first, name)
	case !slices.Equal(c.names, other.names):
		return wrong("%s and %s: the one has %d classes, and the other %d, or they are called otherwise", c.first, name, len(c.names), len(other.names))
	}
	return nil
}

// noLabel is what datasets writes where a sample has none.
const noLabel = -1

// classes finds the names. Where labels are texts all of them are read for it.
func (l Parquet) classes(ctx context.Context, from store.Store, names []string, o Options) (*tableClasses, error) {
	name, f, err := l.openFirst(ctx, from, names)
	if err != nil {
		return nil, err
	}
	c := &tableClasses{names: f.columns.names}
	if f.columns.hasTexts() {
		if c, err = l.texts(ctx, from, name, names, o); err != nil {
			return nil, err
		}
	}
	if len(c.names) > maxClasses || bytesOf(c.names) > maxClassBytes {
		return nil, wrong("%s: %v", name, errClasses)
	}
	c.samples, c.first, c.columns = make([]int, len(c.names)), name, f.columns
	return c, nil
}

// openFirst opens the first file that has rows; if none has, the last one.
func (l Parquet) openFirst(ctx context.Context, from store.Store, names []string) (name string, f *openedParquet, err error) {
	for _, name = range names {
		if f, err = l.open(ctx, from, name); err != nil || f.file.Rows() > 0 {
			return name, f, err
		}
	}
	return name, f, nil
}

// texts reads the labels of all files, of which those of the first one with rows are texts.
func (l Parquet) texts(ctx context.Context, from store.Store, first string, names []string, o Options) (*tableClasses, error) {
	c := &tableClasses{labels: map[string]int64{}}
	err := inOrder(ctx, names, o.Readers, func(ctx context.Context, name string) (map[string]bool, error) {
		found, bytes := map[string]bool{}, 0
		f, err := l.open(ctx, from, name)
		if err != nil || f.file.Rows() == 0 {
			return nil, err
		}
		if !f.columns.hasTexts() {
			err = wrong("the labels of %s are texts, and here they are none", first)
		}
		if err == nil {
			err = f.file.Scalars(f.columns.label, func(v parquet.Scalar) error {
				if name := className(v); !v.Null && !found[name] {
					found[name] = true
					bytes += len(name)
				}
				if len(found) > maxClasses || bytes > maxClassBytes {
					return wrong("%v", errClasses)
				}
				return ctx.Err()
			})
		}
		if err != nil {
			return nil, about(name, err)
		}
		return found, nil
	}, func(found map[string]bool) error {
		for text := range found {
			c.labels[text] = 0
		}
		return nil
	})
	for text := range c.labels {
		c.names = append(c.names, text)
	}
	slices.SortFunc(c.names, compareNames[string])
	for i, name := range c.names {
		c.labels[name] = int64(i)
	}
	return c, err
}

// className is the name of the class that a text is.
func className(v parquet.Scalar) string { return strings.ToValidUTF8(v.Text, "\ufffd") }

// of is the label of a value; false: it is none.
func (c *tableClasses) of(v parquet.Scalar) (int64, bool, error) {
	if c.labels != nil {
		label, known := c.labels[className(v)]
		if !known && !v.Null {
			return 0, false, errors.New("the file was written while it was read")
		}
		return label, !v.Null, nil
	}
	if v.Null || v.Int == noLabel && len(c.names) > 0 {
		return 0, false, nil
	}
	if len(c.names) > 0 && (v.Int < 0 || v.Int >= int64(len(c.names))) {
		return 0, false, wrong("its label is %d, and there are %d classes", v.Int, len(c.names))
	}
	return v.Int, true, nil
}

// count notes a sample of a class.
func (c *tableClasses) count(label int64) {
	if len(c.names) > 0 {
		c.samples[label]++
	}
}

// tell adds the classes to a manifest.
func (c *tableClasses) tell(to *manifest.Builder) {
	for i, name := range c.names {
		to.Class(name, c.samples[i], [32]byte{})
	}
}
