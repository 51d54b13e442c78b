// Package layout finds the samples in what a store holds. A layout decides which objects are samples, their order and
// their labels, and keeps nothing: what it finds goes to a manifest. Goroutines that a scan starts end with it.
package layout

import (
	"context"
	"errors"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/parquet"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// ErrLayout is wrapped by the error of a scan that finds something else than its layout.
var ErrLayout = errors.New("not an image folder")

// A Layout finds samples. All methods may be called by many goroutines at once.
type Layout interface {
	// Form is what is listed of each sample.
	Form() manifest.Form
	// Scan adds all samples to a manifest, in the order that users of the layout expect. What it cannot place is an
	// error that wraps ErrLayout and names the object. A cancelled context ends it between two reads.
	Scan(ctx context.Context, from store.Store, o Options, to *manifest.Builder) error
}

// Options of a scan.
type Options struct {
	// Progress is told how many samples there are so far, every few thousand and at the end; never by two goroutines
	// at once.
	Progress func(samples int)
	// Readers is how many directories are read at once, Stats how many files are asked about at once, at most.
	Readers, Stats int
	// Questions are those that the file system has not answered; nil notes none.
	Questions *Questions
	// Unpacked, if set, takes what pages of Parquet files unpack to. nil: those that have to be unpacked are refused.
	Unpacked func(ctx context.Context, o *store.Object, p *parquet.Part, v *parquet.Packed) error
	// Slow is called before each question to the storage; tests make it last there.
	Slow func()
}
