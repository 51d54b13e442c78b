package dataset

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/dataset/layout"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// The names of layouts, as Options.Layout takes them. A table is told by Options.Table.
const (
	folderLayout  = "folder"
	mdsLayout     = "mds"
	tarLayout     = "tar"
	parquetLayout = "parquet"
	tableLayout   = "table"
)

// layouts are all that may be named; those of lists are called as their formats.
var layouts = append([]string{folderLayout, mdsLayout, tarLayout, parquetLayout}, layout.ListFormats...)

// CheckLayout returns what is wrong with the name of a layout; "" names none.
func CheckLayout(name string) error {
	if name == "" || slices.Contains(layouts, name) {
		return nil
	}
	return fmt.Errorf("no layout is called %.99q; there are %s", name, strings.Join(layouts, ", "))
}

// isOfFiles reports whether a layout is that of files in a folder, and not of the folder itself.
func isOfFiles(name string) bool { return name != "" && name != folderLayout && name != mdsLayout }

// splitAs is split of a place whose layout was named: what its name does not tell from a folder is a file, if it is none.
func splitAs(place, name string) (folder, part string, err error) {
	folder, part, err = split(place)
	if err != nil || part != "" || !isOfFiles(name) {
		return folder, part, err
	}
	if store.IsURL(folder) {
		folder, part = cutLast(folder)
		return folder, part, nil
	}
	if fi, err := os.Stat(folder); err == nil && !fi.IsDir() {
		return filepath.Dir(folder), filepath.Base(folder), nil
	}
	return folder, "", nil
}

// detectLayout tells by names, and by what lies in a folder, which layout a part of it has.
func detectLayout(ctx context.Context, from store.Store, part string, o *Options) string {
	folder := part == "" && o.Table == ""
	switch {
	case o.Table != "":
		return tableLayout
	case folder && layout.HoldsMDS(ctx, from):
		return mdsLayout
	case layout.IsParquet(part), folder && layout.HoldsParquet(ctx, from):
		return parquetLayout
	case folder:
		return folderLayout
	}
	if name, one := layout.Literal(part); one && layout.IsList(name) {
		return layout.FormatOfList(name)
	}
	return tarLayout
}

// layoutOf is the layout of a part of the folder root, which from has.
func layoutOf(ctx context.Context, from store.Store, root, part string, o Options) (layout.Layout, error) {
	if store.IsProgram(root) {
		return layout.Program{}, refuseChoice("data sets of a program", &o)
	}
	if err := CheckLayout(o.Layout); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLayout, err)
	}
	name := o.Layout
	switch {
	case name == "":
		name = detectLayout(ctx, from, part, &o)
	case o.Table != "":
		return nil, fmt.Errorf("%w: a table has no other layout, as %s", ErrLayout, name)
	case part != "" && !isOfFiles(name), part == "" && slices.Contains(layout.ListFormats, name):
		return nil, fmt.Errorf("%w: %s is no place for the layout %s, which is that of %s", ErrLayout, Join(root, part), name, placeOf(name))
	}
	return layoutCalled(ctx, name, root, filepath.ToSlash(part), &o)
}

// placeOf says where a layout is.
func placeOf(name string) string {
	if isOfFiles(name) {
		return "files"
	}
	return "a folder"
}

// layoutCalled is the layout of a name.
func layoutCalled(ctx context.Context, name, root, part string, o *Options) (layout.Layout, error) {
	choice := choiceOf(o)
	switch name {
	case mdsLayout:
		return layout.MDS{Image: o.Image, Choice: choice}, nil
	case parquetLayout:
		return layout.Parquet{Pattern: part, Image: o.Image, Choice: choice}, nil
	}
	if o.Image != "" {
		return nil, fmt.Errorf("%w whose pictures lie in columns: image=%q is for Parquet files and MDS", ErrLayout, o.Image)
	}
	switch name {
	case tableLayout:
		return layoutOfTable(ctx, layout.List{Name: "the table", Root: root, Table: o.Table, Choice: choice})
	case folderLayout:
		return layout.Folder{Flat: o.Flat, Empty: o.Empty}, refuseChoice("class folders", o)
	case tarLayout:
		if part == "" {
			part = "*.tar"
		}
		return layout.Tar{Pattern: part, Choice: choice}, nil
	}
	if one, ok := layout.Literal(part); ok {
		part = one
	}
	return layout.List{Name: part, Format: name, Root: root, Choice: choice}, nil
}
