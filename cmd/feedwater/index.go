package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
)

// indexOptions are the flags of `feedwater index`.
type indexOptions struct {
	indexPlace
	lists             listPlace
	folder            string
	interval, workers int
}

func newIndex() *cobra.Command {
	o := &indexOptions{}
	c := &cobra.Command{
		Use:   "index FOLDER",
		Short: "Index the pictures of a folder ahead of time, so that the first epoch is as fast as the others",
		Long: `Lists the pictures of a folder, with a folder for each class or without, and makes an index of each JPEG file: where its data can be entered, so that what lies outside a crop need not be
decoded. It takes about 2 % of the files' bytes, and lies in the folder that --index names, not among the pictures.

Nobody has to run this: nodes and Loaders make indexes on their way, the first time they decode a picture. An index changes no byte of a batch. It is
bound to the bytes that it was made of, and made again where these changed; all of it may be deleted at any time. Running this again, or after
an interruption, keeps what is there.

PNG and WebP files have an index of two bytes. Where --index-copies has room for it progressive JPEG files have one that is as large as the file, and lossy
WebP files another one. JPEG files with restart markers, damaged files and other formats have no index.`,
		Example: `  feedwater index /data/imagenet/train
  feedwater index /data/imagenet/train --index /fast/index && FEEDWATER_INDEX=/fast/index python train.py`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("index takes one folder, not %d", len(args))}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.folder = args[0]
			return o.runIndex(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	o.addFlags(f, "")
	o.lists.addFlags(f)
	f.IntVar(&o.interval, "interval", 8, "blocks of 8 columns from one entry to the next: fewer skip more and take more bytes")
	f.IntVar(&o.workers, "workers", 0, "pictures to index at once (default: one per core this process may use)")
	addConfig(c, "interval", "config")
	return c
}

func (o *indexOptions) checkFlags() error {
	switch {
	case o.interval < 1 || o.interval > pipeline.MaxIndexInterval:
		return fmt.Errorf("--interval %d is not within 1 to %d", o.interval, pipeline.MaxIndexInterval)
	case o.workers < 0 || o.workers > maxWorkers:
		return fmt.Errorf("--workers %d is not within 0 (one per core) to %d", o.workers, maxWorkers)
	case o.dir == indexOff:
		return fmt.Errorf("--index, or %s, is off: there is nothing to do", variableOf("index"))
	}
	return nil
}

func (o *indexOptions) runIndex(ctx context.Context, out, status io.Writer) error {
	if err := o.checkFlags(); err != nil {
		return usageError{err}
	}
	dir, err := o.resolveFolder(o.lists.dir)
	if err != nil {
		return err
	}
	for _, w := range optionWarnings("index", &o.indexPlace, &o.lists) {
		fmt.Fprintf(status, "feedwater: %s\n", w)
	}
	show := newProgress(status)
	roots := bulkhead.New(bulkhead.Options{})
	defer roots.Close()
	exitGuardOf(ctx).beforeForce(func() { sayHanging(roots.States(), status) })
	lists, err := o.lists.datasetOptions(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer lists.ReadCache.Close() //nolint:errcheck // what is in it is checked when it is read
	lists.Progress, lists.Flat, lists.Empty = show.showScanned, true, true
	lists.Apart = append(lists.Apart, o.apart(o.lists.dir)...)
	data, err := pipeline.OpenFolder(ctx, roots, o.folder, lists)
	if err != nil {
		show.clearBar()
		sayHanging(roots.States(), status)
		if errors.Is(err, context.Canceled) {
			return errors.New("interrupted while the folder was listed")
		}
		return err
	}
	defer data.Close()
	began := time.Now()
	index := pipeline.IndexOptions{Dir: dir, MaxBytes: int64(o.limit), CopyBytes: int64(o.copies), Interval: o.interval}
	done, err := pipeline.IndexSnapshot(ctx, roots, data, index, o.workers, func(n pipeline.Indexed) { show.showStep(n.Seen, data.Len()) })
	show.clearBar()
	interrupted := errors.Is(err, context.Canceled)
	if err != nil && done.Seen == 0 && !interrupted {
		return err
	}
	o.printReport(out, dir, done, time.Since(began))
	switch {
	case interrupted:
		sayHanging(roots.States(), status)
		return fmt.Errorf("interrupted after %d of %d pictures%s; what was written stays, and running it again goes on from there", done.Seen, data.Len(), lostText(done))
	case err != nil:
		return fmt.Errorf("stopped after %d of %d pictures%s: %w", done.Seen, data.Len(), lostText(done), err)
	case done.Failed > 0:
		return fmt.Errorf("%d of %d pictures could not be read, the first: %w", done.Failed, data.Len(), done.Failure)
	}
	return nil
}

// lostText says how much of the work was in vain; empty: none.
func lostText(n pipeline.Indexed) string {
	if n.Lost == 0 {
		return ""
	}
	return fmt.Sprintf(", of which %d indexes could not be written", n.Lost)
}

func (o *indexOptions) printReport(out io.Writer, dir string, n pipeline.Indexed, took time.Duration) {
	fmt.Fprintf(out, "%d pictures in %.1f s, %.0f a second: %d indexed, %d had an index, %d have none\n",
		n.Seen, took.Seconds(), float64(n.Seen)/took.Seconds(), n.Made, n.Kept, n.None)
	if n.Lost > 0 && n.CopiesFull {
		fmt.Fprintf(out, "%d copies were made and are not kept: others took the room meanwhile\n", n.Lost)
	}
	files, bytes, disk := bytesize.Size(n.FileBytes), bytesize.Size(n.IndexBytes), bytesize.Size(n.DiskBytes)
	fmt.Fprintf(out, "index of %s, %.2f %% of %s, an entry every %d blocks, in %s: %s on disk%s\n",
		&bytes, 100*float64(n.IndexBytes)/float64(max(n.FileBytes, 1)), &files, o.interval, dir, &disk, besideCopies(n))
	copies := bytesize.Size(n.CopyBytes)
	switch {
	case n.CopiesFull:
		fmt.Fprintf(out, "copies: %d pictures have one; --index-copies %s has no room for more, and the others are decoded without: those of all data sets take %s\n", n.Copies, &o.copies, &copies)
	case n.Copies > 0:
		fmt.Fprintf(out, "copies: %d pictures have one; those of all data sets take %s\n", n.Copies, &copies)
	}
}

// besideCopies says that copies are not among what is on disk; empty: there are none.
func besideCopies(n pipeline.Indexed) string {
	if n.Copies == 0 {
		return ""
	}
	return ", without copies"
}
