package dataset

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/layout"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Resolve returns the place of a data set without links in the way to its folder. A place is a folder, a list of
// files in it (see layout.List), or a pattern of tar or Parquet files (see layout.Tar
// and layout.Parquet): what a folder's own path names is that
// folder, however it is called.
func Resolve(place string) (string, error) {
	folder, part, err := split(place)
	if err != nil {
		return "", err
	}
	return Join(folder, part), nil
}

// IsURL reports whether a place lies on a server.
func IsURL(place string) bool { return store.IsURL(place) }

// Traffic is what was asked of one bucket or web server so far.
type Traffic = store.Traffic

// Traffics tells of all buckets and web servers that this process has read, by their names, and of those in which places lie that are URLs.
func Traffics(places ...string) []Traffic { return store.Traffics(places...) }

// CheckURL returns what is wrong with a place on a server, before anything is asked.
func CheckURL(place string) error { return store.CheckURL(place) }

// WithoutSecrets is a place for messages: an URL may hold what nobody else should read.
func WithoutSecrets(place string) string { return store.WithoutSecrets(place) }

// HasOptions reports whether a path, put behind an URL, would change its options.
func HasOptions(path string) bool {
	_, options := store.CutURL(path)
	return options != "" || strings.ContainsAny(path, "#\x00")
}

// IsProgram reports whether a place is what a program of this machine reads: nobody else may name one.
func IsProgram(place string) bool { return store.IsProgram(place) }

// Join is what lies below a place.
func Join(place, below string) string {
	if store.IsURL(place) {
		return store.JoinURL(place, filepath.ToSlash(below))
	}
	return filepath.Join(place, below)
}

// Holds reports whether a place is another one, or lies in it.
func Holds(place, other string) bool {
	if store.IsURL(place) || store.IsURL(other) {
		_, below := store.Below(place, other)
		return below
	}
	below, err := filepath.Rel(place, other)
	return err == nil && filepath.IsLocal(below)
}

// FolderOf is the folder that a place is in, or is, by its name alone.
func FolderOf(place string) string {
	folder, _ := cutPlace(place)
	return folder
}

// split cuts a place into its folder, absolute and without links, and a list or a pattern below that; "" for the
// folder itself.
func split(place string) (folder, part string, err error) {
	if store.IsURL(place) {
		folder, part = cutPlace(place)
		return folder, part, store.CheckURL(folder)
	}
	if folder, err = filepath.Abs(place); err != nil {
		return "", "", err
	}
	if in, named := cutExisting(folder); named != "" || in != folder {
		if fi, err := os.Stat(folder); err != nil || !fi.IsDir() {
			folder, part = in, named
		}
	}
	folder, err = filepath.EvalSymlinks(folder)
	return folder, part, err
}

// cutPlace is cut of what may lie on a server: there a name alone says what it is.
func cutPlace(place string) (folder, part string) {
	if !store.IsURL(place) {
		return cut(place)
	}
	return cutURL(place, cut)
}

// cutLast is cutPlace of an URL whose last part is a file, however it is called.
func cutLast(place string) (folder, part string) {
	return cutURL(place, func(path string) (folder, part string) { return filepath.Dir(path), filepath.Base(path) })
}

// cutURL cuts an URL where a function cuts its path.
func cutURL(place string, cut func(path string) (folder, part string)) (folder, part string) {
	name, options := store.CutURL(place)
	scheme, rest, _ := strings.Cut(name, "://")
	folder, part = cut(filepath.FromSlash(rest))
	if folder == "." || folder == "" { // the whole is the name of a host or a bucket
		return place, ""
	}
	return scheme + "://" + filepath.ToSlash(folder) + options, filepath.ToSlash(part)
}

// absolutePlace is a place, whatever the working directory.
func absolutePlace(place string) (string, error) {
	if store.IsURL(place) {
		return place, nil
	}
	return filepath.Abs(place)
}

// openStore opens the store of a folder.
func openStore(folder string, o *Options) (store.Store, error) {
	if store.IsURL(folder) {
		return store.OpenURL(folder, store.RemoteOptions{Within: o.Within, Alive: o.Alive, OnRead: o.OnRead})
	}
	return store.OpenFiles(folder, o.Beneath, o.Alive)
}

// LongAsked is how long a question to a server of objects waits before trainers, watchers and logs are told of it.
const LongAsked = 2 * time.Second

// Trouble is that of the server with what is read at a place, or below it: which question has waited for an answer for so long at least, for how long,
// and what its last try failed of, or what the latest failed of. Of files in a folder it is that of all that is read of this folder, without those below
// it. It is nil where there is none, and of places on disks.
func Trouble(place string, least time.Duration) error {
	folder, part := cutPlace(place)
	return store.Trouble(folder, part == "", least)
}

// reopen opens a folder that may lead elsewhere now.
func reopen(folder string, o *Options) (store.Store, error) {
	if store.IsURL(folder) {
		return store.OpenURL(folder, store.RemoteOptions{Within: o.Within})
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, err
	}
	return store.OpenFiles(real, o.Beneath, nil)
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

// cutExisting is cut of a path on a disk, where what is called like a pattern, and is there, is no pattern but itself.
func cutExisting(place string) (folder, part string) {
	folder, part = cut(place)
	for layout.IsPattern(part) {
		first, rest, more := strings.Cut(part, string(filepath.Separator))
		fi, err := os.Stat(filepath.Join(folder, first))
		switch {
		case err != nil || fi.IsDir() != more:
			return folder, part
		case !more:
			return folder, layout.Escape(first)
		}
		below, named := cut(rest)
		folder, part = filepath.Join(folder, first, below), named
	}
	return folder, part
}

// layoutOfTable is the layout of a table: of files, or of ranges of them.
func layoutOfTable(ctx context.Context, list layout.List) (layout.Layout, error) {
	ranges, err := layout.HasRanges(ctx, list.Table)
	if err != nil || !ranges {
		return list, err
	}
	return layout.Ranges{List: list}, nil
}

// choiceOf is what is listed of each sample besides its picture.
func choiceOf(o *Options) layout.Choice {
	choice := layout.Choice{Label: o.Label}
	if o.Values != "" {
		choice.Values = strings.Split(o.Values, ",")
	}
	return choice
}

// refuseChoice refuses labels and values that are asked for where there are none.
func refuseChoice(in string, o *Options) error {
	if o.Label != "" {
		return fmt.Errorf("%w whose labels lie elsewhere: label=%q is for lists, tables, tar and Parquet files and MDS; %s have theirs", ErrLayout, o.Label, in)
	}
	return refuseValues(in, o)
}

// refuseValues refuses values that are asked for where there are none.
func refuseValues(in string, o *Options) error {
	if o.Values != "" {
		return &ValueError{Name: choiceOf(o).Values[0], In: in}
	}
	return nil
}
