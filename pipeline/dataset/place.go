package dataset

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/dataset/layout"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Resolve returns the place of a data set without links in the way to its folder. A place is a folder, a list of
// files in it (see layout.List), or a pattern of tar files (see layout.Tar): what a folder's own path names is that
// folder, however it is called.
func Resolve(place string) (string, error) {
	folder, part, err := split(place)
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, part), nil
}

// FolderOf is the folder that a place is in, or is, by its name alone.
func FolderOf(place string) string {
	folder, _ := cut(place)
	return folder
}

// split cuts a place into its folder, absolute and without links, and a list or a pattern below that; "" for the
// folder itself.
func split(place string) (folder, part string, err error) {
	if folder, err = filepath.Abs(place); err != nil {
		return "", "", err
	}
	if in, named := cut(folder); named != "" {
		if fi, err := os.Stat(folder); err != nil || !fi.IsDir() {
			folder, part = in, named
		}
	}
	folder, err = filepath.EvalSymlinks(folder)
	return folder, part, err
}

// reopen opens a folder that may lead elsewhere now.
func reopen(folder, beneath string) (store.Store, error) {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, err
	}
	return store.OpenFiles(real, beneath, nil)
}

// cut cuts a place by its name: before the first part that is a pattern, or before the last one if that is called
// like a list or a shard.
func cut(place string) (folder, part string) {
	place = filepath.Clean(place)
	at := -1
	if layout.IsPattern(place) {
		head := place[:strings.IndexAny(place, "{*?[")]
		at = strings.LastIndexByte(head, filepath.Separator)
	} else if name := filepath.Base(place); layout.IsList(name) || layout.IsShard(name) {
		at = strings.LastIndexByte(place, filepath.Separator)
	}
	switch {
	case at < 0 && place == filepath.Base(place) && (layout.IsPattern(place) || layout.IsList(place) || layout.IsShard(place)):
		return ".", place
	case at < 0:
		return place, ""
	case at == 0:
		return place[:1], place[1:]
	}
	return place[:at], place[at+1:]
}

// layoutOf is the layout of a part of the folder root.
func layoutOf(root, part string, o Options) layout.Layout {
	switch {
	case o.Table != "":
		return layout.List{Name: "the table", Root: root, Table: o.Table}
	case part == "":
		return layout.Folder{Flat: o.Flat, Empty: o.Empty}
	case layout.IsList(part) && !layout.IsPattern(part):
		return layout.List{Name: filepath.ToSlash(part), Root: root}
	}
	return layout.Tar{Pattern: filepath.ToSlash(part)}
}
