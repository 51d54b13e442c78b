package layout

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Program is the layout of what a program of this machine reads: as many samples as it says, in the order of their numbers. Each is read once, to find out
// how many bytes it has, and its label.
type Program struct{}

// Form implements Layout.
func (Program) Form() manifest.Form { return manifest.Labelled }

// perQuestion is how many samples are asked about by one goroutine.
const perQuestion = 64

// Scan implements Layout.
func (Program) Scan(ctx context.Context, from store.Store, o Options, to *manifest.Builder) error {
	place, err := from.Stat(ctx, "")
	if err != nil {
		return programError("the data set", err)
	}
	if place.Size <= 0 {
		return wrong("the data set has no sample: its length is %d", place.Size)
	}
	to.Watch("", place)
	var firsts []int64
	for first := int64(0); first < place.Size; first += perQuestion {
		firsts = append(firsts, first)
	}
	s := &programScan{to: to, progress: progress{report: o.Progress}}
	err = inOrder(ctx, firsts, min(o.Readers, from.Reads()), func(ctx context.Context, first int64) ([]manifest.Sample, error) {
		o.Slow()
		return askSome(ctx, from, first, min(first+perQuestion, place.Size))
	}, s.take)
	if err == nil {
		s.progress.last()
	}
	return err
}

// askSome asks about some samples.
func askSome(ctx context.Context, from store.Store, first, end int64) (all []manifest.Sample, err error) {
	for i := first; i < end; i++ {
		name := strconv.FormatInt(i, 10)
		a, err := from.Stat(ctx, name)
		if err != nil {
			return nil, programError("sample "+name, err)
		}
		label, err := strconv.ParseInt(a.Version, 10, 64)
		if err != nil {
			return nil, wrong("sample %d: its label is %.20q", i, a.Version)
		}
		all = append(all, manifest.Sample{Key: []byte(name), Label: label, Size: a.Size, Version: []byte(a.Version)})
	}
	return all, nil
}

// programError is an error about what a program reads.
func programError(what string, err error) error {
	if errors.As(err, new(*store.RaisedError)) {
		return wrong("%s: %v", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// programScan adds samples to a manifest.
type programScan struct {
	to       *manifest.Builder
	progress progress
	bare     bool // samples have no labels
}

func (s *programScan) take(all []manifest.Sample) error {
	for i := range all {
		bare := all[i].Label == store.Unlabelled
		if n := s.to.Samples(); n == 0 {
			s.bare = bare
		} else if bare != s.bare {
			return wrong("sample %d and those before: the one has a label, and the others have none", n)
		}
		if bare {
			all[i].Label = 0
			s.to.Unlabel()
		}
		if err := s.to.Sample(&all[i]); err != nil {
			return err
		}
	}
	s.progress.add(len(all))
	return nil
}
