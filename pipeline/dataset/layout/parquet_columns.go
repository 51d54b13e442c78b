package layout

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/dataset/parquet"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// tableColumns are the columns of a Parquet file that are used.
type tableColumns struct {
	image  *parquet.Column
	path   *parquet.Column // beside the image, or nil
	label  *parquet.Column // nil: none
	names  []string        // of classes, by label
	values []*parquet.Column
}

// picture is what the column of pictures is called, whether they are in a struct or not.
func (c *tableColumns) picture() string { return strings.TrimSuffix(c.image.String(), ".bytes") }

// hasTexts reports whether the labels are texts.
func (c *tableColumns) hasTexts() bool { return c.label != nil && c.label.Kind == parquet.String }

// features is what the library datasets writes into a file's metadata.
type features struct {
	Info struct {
		Features map[string]json.RawMessage `json:"features"`
	} `json:"info"`
}

// feature is one of them, if it is of a column.
type feature struct {
	Type  string   `json:"_type"`
	Names []string `json:"names"`
}

// featuresOf are the features of a file's columns; empty where it says none.
func featuresOf(f *parquet.File) map[string]feature {
	var all features
	found := map[string]feature{}
	if json.Unmarshal([]byte(f.Metadata("huggingface")), &all) != nil {
		return found // it is for people then, or from another writer
	}
	for name, text := range all.Info.Features {
		var one feature
		if json.Unmarshal(text, &one) == nil {
			found[name] = one
		}
	}
	return found
}

// Names that columns have where nothing else tells what they are. The first one that there is counts.
var (
	imageNames = []string{"image", "img", "picture", "photo", "jpg", "jpeg", "png", "bytes", "content", "data"}
	labelNames = []string{"label", "labels", "class", "target", "cls", "fine_label"}
)

// choose finds the columns of pictures and labels.
func (l Parquet) choose(f *parquet.File) (*tableColumns, error) {
	said := featuresOf(f)
	image, err := l.chooseImage(f, said)
	if err != nil {
		return nil, err
	}
	c := &tableColumns{image: image}
	if n := len(image.Path); n > 1 {
		c.path = findColumn(f, append(slices.Clone(image.Path[:n-1]), "path"))
	}
	if c.label, err = l.chooseLabel(f, said); err != nil {
		return nil, err
	}
	if c.label != nil {
		c.names = said[c.label.String()].Names
	}
	for _, name := range l.Values {
		value, err := chooseValue(f, name)
		if err != nil {
			return nil, err
		}
		c.values = append(c.values, value)
	}
	return c, nil
}

// chooseValue finds a further column.
func chooseValue(f *parquet.File, name string) (*parquet.Column, error) {
	c := findColumn(f, strings.Split(name, "."))
	switch {
	case c == nil:
		return nil, missingColumn(f, name)
	case c.Repeated:
		return nil, wrong("the column %s has several values in a row", name)
	case c.Kind == parquet.Other:
		return nil, wrong("the column %s has neither texts, bytes nor whole numbers", name)
	}
	return c, nil
}

// findColumn is the leaf of a path; nil if there is none.
func findColumn(f *parquet.File, path []string) *parquet.Column {
	for i := range f.Columns() {
		if c := &f.Columns()[i]; slices.Equal(c.Path, path) {
			return c
		}
	}
	return nil
}

// missingColumn is the error about a name that no column has.
func missingColumn(f *parquet.File, name string) error {
	return wrong("there is no column %s; there are %s", name, columnNames(f))
}

// pictureIn is the column of pictures that a name stands for: the bytes of a struct of bytes and path, or itself.
func pictureIn(f *parquet.File, name string) *parquet.Column {
	path := strings.Split(name, ".")
	if c := findColumn(f, append(slices.Clone(path), "bytes")); c != nil && c.Kind == parquet.Bytes {
		return c
	}
	return findColumn(f, path)
}

// chooseImage finds the column of pictures.
func (l Parquet) chooseImage(f *parquet.File, said map[string]feature) (*parquet.Column, error) {
	name := l.Image
	if name == "" {
		var err error
		if name, err = imageName(f, said); err != nil {
			return nil, err
		}
	}
	c := pictureIn(f, name)
	switch {
	case c == nil:
		return nil, missingColumn(f, name)
	case c.Repeated:
		return nil, wrong("the column %s has several pictures in a row: write one in a row", name)
	case c.Kind == parquet.String:
		return nil, wrong("the column %s has texts, not pictures: if they are paths of files, name these by a list, as a .csv", name)
	case c.Kind != parquet.Bytes:
		return nil, wrong("the column %s has no bytes; pictures are in a column of binary, or of struct<bytes: binary, path: string>", name)
	}
	return c, nil
}

// imageName is what the column of pictures is called.
func imageName(f *parquet.File, said map[string]feature) (string, error) {
	var candidates []string
	for name, one := range said {
		if one.Type == "Image" {
			candidates = append(candidates, name)
		}
	}
	if len(candidates) == 0 {
		for _, c := range f.Columns() {
			if name := strings.TrimSuffix(c.String(), ".bytes"); c.Kind == parquet.Bytes && !c.Repeated {
				candidates = append(candidates, name)
			}
		}
	}
	slices.Sort(candidates)
	switch {
	case len(candidates) == 0:
		return "", wrong("no column has pictures: of binary, or of struct<bytes: binary, path: string>; there are %s", columnNames(f))
	case len(candidates) == 1:
		return candidates[0], nil
	}
	for _, name := range imageNames {
		if slices.Contains(candidates, name) {
			return name, nil
		}
	}
	return "", wrong("several columns may have the pictures: say which by image=, one of %s", strings.Join(candidates, ", "))
}

// chooseLabel finds the column of labels; nil: there is none.
func (l Parquet) chooseLabel(f *parquet.File, said map[string]feature) (*parquet.Column, error) {
	if l.Label != "" {
		c := findColumn(f, strings.Split(l.Label, "."))
		switch {
		case c == nil:
			return nil, missingColumn(f, l.Label)
		case !usable(c):
			return nil, wrong("%s", unusable(c))
		}
		return c, nil
	}
	var candidates []string
	for name, one := range said {
		if one.Type == "ClassLabel" {
			candidates = append(candidates, name)
		}
	}
	slices.Sort(candidates)
	if len(candidates) != 1 {
		for _, name := range labelNames {
			if c := findColumn(f, []string{name}); usable(c) && (len(candidates) == 0 || slices.Contains(candidates, name)) {
				return c, nil
			}
		}
	}
	switch len(candidates) {
	case 0:
		return nil, nil //nolint:nilnil // there is none
	case 1:
		if c := findColumn(f, candidates); usable(c) {
			return c, nil
		}
		return nil, wrong("the column %s has classes, and no whole numbers or texts, one in each row", candidates[0])
	}
	return nil, wrong("several columns have classes: say which by label=, one of %s", strings.Join(candidates, ", "))
}

// usable reports whether a column may have labels.
func usable(c *parquet.Column) bool {
	return c != nil && !c.Repeated && (c.Kind == parquet.Int || c.Kind == parquet.String)
}

// unusable says why a column has no labels.
func unusable(c *parquet.Column) string {
	what := c.Type
	if c.Repeated {
		what = "several values in a row, of type " + what
	}
	return fmt.Sprintf("the column %s has neither whole numbers nor texts, one in each row, but %s", c, what)
}

// WhyUnlabelled says why the rows of a file have no labels, for people.
func (l Parquet) WhyUnlabelled(ctx context.Context, from store.Store, first string) string {
	f, err := l.open(ctx, from, first)
	if err != nil {
		return ""
	}
	if c := f.columns.label; c != nil {
		return fmt.Sprintf("the column %s has none", c)
	}
	for i := range f.file.Columns() {
		if c := &f.file.Columns()[i]; slices.Contains(labelNames, c.Path[0]) && !usable(c) {
			return unusable(c)
		}
	}
	return fmt.Sprintf("no column is called %s; there are %s", strings.Join(labelNames, ", "), columnNames(f.file))
}

// columnNames lists them for people.
func columnNames(f *parquet.File) string {
	var all []string
	for _, c := range f.Columns() {
		all = append(all, c.String())
	}
	if len(all) > 20 {
		all = append(all[:20], "…")
	}
	return strings.Join(all, ", ")
}
