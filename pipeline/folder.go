package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// OpenFolder is dataset.Open that comes back where the storage of the folder does not answer, with an error that wraps
// a *bulkhead.HungError, and within a second of the end of ctx. The scan is then left to itself, and what it brings is
// closed.
func OpenFolder(ctx context.Context, roots *bulkhead.Roots, folder string, o dataset.Options) (*dataset.Snapshot, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a scan that is left to itself keeps nobody from the next one
	o.Questions = &dataset.Questions{}
	o.Within = roots.Deadline() * 5 / 4 // who waits for a server is given up first, so that the root is sick
	root := roots.Of(dataset.FolderOf(folder))
	o.Generation = root.Generation()
	o.OnRead = root.NoteRead
	root.Explain(func(folder string) error { return dataset.Trouble(folder, 0) })
	cache, noCache := o.CacheFolder()
	scan := func(alive func()) (*dataset.Snapshot, error) {
		o := o
		o.Alive = alive
		if noCache == nil {
			o.CallFolder = callFolder(roots.Apart(cache), alive)
		}
		return dataset.Open(ctx, folder, o)
	}
	shut := func(s *dataset.Snapshot) { _ = s.Close() }
	s, err := bulkhead.DoOnce(ctx, root, "list", scan, shut, o.Questions.Again)
	if hung, ok := err.(*bulkhead.HungError); ok { //nolint:errorlint // what dataset.Open returns names the folder
		return nil, fmt.Errorf("open data set %s: %w", dataset.WithoutSecrets(folder), WithTrouble(folder, hung))
	}
	return s, err
}

// WithTrouble is the error of storage that does not answer, and what its server does, if it lies on one: which object is asked for, for how long, and
// what the last answer was.
func WithTrouble(folder string, err *bulkhead.HungError) error {
	if err.Cause != nil { // that was asked for when it was given up
		return err
	}
	if trouble := dataset.Trouble(folder, 0); trouble != nil {
		return fmt.Errorf("%w: %w", err, trouble)
	}
	return err
}

// callFolder makes calls on a folder of lists. While one is waited for, the storage of the data set is told to be
// alive: it is not to blame.
func callFolder(root *bulkhead.Root, alive func()) dataset.CallFolder {
	return func(ctx context.Context, op string, call func() (any, error), drop func(any)) (any, error) {
		defer callRepeatedly(alive)()
		return bulkhead.Do(ctx, root, op, func(func()) (any, error) { return call() }, drop)
	}
}

// callRepeatedly calls f every few milliseconds until the function that it returns is called.
func callRepeatedly(f func()) (end func()) {
	const every = 5 * time.Millisecond
	tick, ended := time.NewTicker(every), make(chan struct{})
	var calling sync.WaitGroup
	calling.Go(func() {
		for {
			select {
			case <-tick.C:
				f()
			case <-ended:
				return
			}
		}
	})
	return func() {
		tick.Stop()
		close(ended)
		calling.Wait()
	}
}
