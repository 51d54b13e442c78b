package snapshots

import (
	"context"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// Scanner takes snapshots of folders.
type Scanner interface {
	// Scan takes the snapshot of a folder, from the cache where it is still true; with anew set from the folder in any
	// case. The caller closes it. progress is told how many files it has found so far, now and then.
	Scan(ctx context.Context, folder Folder, anew bool, progress func(files int)) (Data, error)
	// Same reports whether two snapshots of one folder list the same files as they were at the same times, and the
	// earlier is as good as the later one.
	Same(earlier, later Data) bool
}

// Folder is where the files of a data set are.
type Folder struct {
	// Path is absolute, without links.
	Path string
	// Beneath, if set, is the folder that no link may lead out of; Path lies in it, or is it.
	Beneath string
	// Table, if set, is the file of a list of what Path holds; see dataset.Options.
	Table string
	// Columns say what is listed of each sample.
	dataset.Columns
}

// Data is a snapshot.
type Data interface {
	Fingerprint() string
	// Versions are digests of the store and of the versions of all that is listed; empty of files. See dataset.Snapshot.
	Versions() (store, versions string)
	// Listing is a digest of all that is listed, with the times of files; empty: it does not tell whether it is the
	// same. See dataset.Snapshot.
	Listing() string
	// Listed is when the scan began that found what is listed.
	Listed() time.Time
	Len() int
	Classes() []dataset.Class
	Close() error
}
