package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// snapshotOptions are the flags of `feedwater snapshot`.
type snapshotOptions struct {
	place, output, label, image, layout string
	fields                              []string
	verify                              bool
}

func newSnapshot() *cobra.Command {
	o := &snapshotOptions{}
	c := &cobra.Command{
		Use:   "snapshot PLACE",
		Short: "List the samples of a data set once, for all nodes",
		Long: `Lists the samples of class folders, tar files, Parquet files or a list, on a disk, in a bucket, and writes that list beside them: in the folder .feedwater
of the folder that they lie in; of class folders on a disk in that beside them, since in it .feedwater would be a class. Nodes and Loaders
that open the place take the list from there, if what it is of is as it was, and need not look for the samples themselves.

Of class folders in a bucket the list is the data set from then on: run this again when pictures were added. A picture that changed is an
error of its sample in any case.`,
		Example: `  feedwater snapshot 's3://bucket/imagenet/train-{000..146}.tar?region=eu-central-1'
  feedwater snapshot /data/imagenet/train
  feedwater snapshot 's3://bucket/laion/*.tar' --fields txt
  feedwater snapshot /data/imagenet/train --verify`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("snapshot takes one place, not %d", len(args))}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.place = args[0]
			if o.verify {
				return o.verifyList(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
			}
			return o.writeList(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`folder`, or URL in a bucket, to write to in place of .feedwater beside the data")
	f.StringVar(&o.label, "label", "", "where labels are, as label= of a Loader says it: lists of other labels are other lists")
	f.StringVar(&o.image, "image", "", "the column of pictures, as image= of a Loader says it")
	f.StringVar(&o.layout, "layout", "", "how the data is laid out, as layout= of a Loader says it")
	f.StringSliceVar(&o.fields, "fields", nil, "further fields, as fields= of a Loader names them, but image, label, index, key, valid")
	f.BoolVar(&o.verify, "verify", false, "write nothing, but take the list that lies beside the data and read every file that it lists")
	addConfig(c, "fields", "config")
	return c
}

// options are those of the data set, whose scan tells how far it is.
func (o *snapshotOptions) options(show *progress) dataset.Options {
	columns := dataset.Columns{Label: o.label, Values: o.values(), Image: o.image, Layout: o.layout}
	return dataset.Options{Columns: columns, Progress: show.showScanned, Flat: true, Empty: true}
}

// values are the fields as plans name them: sorted, as Loaders sort them.
func (o *snapshotOptions) values() string { return strings.Join(pipeline.SortValues(o.fields), ",") }

func (o *snapshotOptions) writeList(ctx context.Context, out, status io.Writer) error {
	kept, err := os.CreateTemp("", "feedwater-*.snapshot")
	if err != nil {
		return err
	}
	defer func() { _, _ = kept.Close(), os.Remove(kept.Name()) }() // what was sent or copied needs it no more
	show := newProgress(status)
	files, err := dataset.WriteList(ctx, o.place, o.options(show), kept)
	show.clearBar()
	if err != nil {
		return interruptedOr(ctx, err)
	}
	size, err := kept.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if o.output != "" {
		files.Folder = o.output
	}
	if err := dataset.PutList(ctx, files.Folder, &files, kept, size); err != nil {
		return interruptedOr(ctx, fmt.Errorf("the list was made and is not kept; -o names another place: %w", err))
	}
	bytes := bytesize.Size(size)
	fmt.Fprintf(out, "%d samples, fingerprint %s: %s in %s\n", files.Samples, files.Fingerprint, &bytes, dataset.Join(files.Folder, files.List))
	return nil
}

// interruptedOr is the error of what ctx may have ended.
func interruptedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted, and nothing was written")
	}
	return err
}

// verifyList reads all files of the list that lies beside the data.
func (o *snapshotOptions) verifyList(ctx context.Context, out, status io.Writer) error {
	dir, err := os.MkdirTemp("", "feedwater-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder for a while
	show := newProgress(status)
	roots := bulkhead.New(bulkhead.Options{})
	defer roots.Close()
	exitGuardOf(ctx).beforeForce(func() { sayHanging(roots.States(), status) })
	options := o.options(show)
	options.CacheDir = dir
	data, err := pipeline.OpenFolder(ctx, roots, o.place, options)
	show.clearBar()
	if err != nil {
		return interruptedOr(ctx, err)
	}
	defer data.Close()
	if !data.Shipped() {
		return fmt.Errorf("%s: no list lies beside it that is true: feedwater snapshot makes one", o.place)
	}
	read, err := readAll(ctx, data, show)
	show.clearBar()
	if err != nil {
		return interruptedOr(ctx, err)
	}
	bytes := bytesize.Size(read)
	fmt.Fprintf(out, "%d samples, fingerprint %s: all are as the list says, %s\n", data.Len(), data.Fingerprint(), &bytes)
	return nil
}

// readAll reads all files of a data set, several at once, and returns their bytes.
func readAll(ctx context.Context, data *dataset.Snapshot, show *progress) (read int64, err error) {
	group, ctx := errgroup.WithContext(ctx)
	var next, all atomic.Int64
	var shown sync.Mutex
	for range max(data.Ahead(), 2*runtime.GOMAXPROCS(0)) {
		group.Go(func() error {
			var buf []byte
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(data.Len()) {
					return nil
				}
				var err error
				if buf, err = data.Read(ctx, int(i), buf); err != nil {
					return err
				}
				all.Add(int64(len(buf)))
				shown.Lock()
				show.showStep(int(i), data.Len())
				shown.Unlock()
			}
			return ctx.Err()
		})
	}
	err = group.Wait()
	return all.Load(), err
}
