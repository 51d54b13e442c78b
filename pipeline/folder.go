package pipeline

import (
	"context"
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/storage"
)

// OpenFolder is dataset.Open that comes back where the storage of the folder does not answer, with an error that wraps a *storage.HungError,
// and within a second of the end of ctx. The scan is then left to itself, and what it brings is closed.
func OpenFolder(ctx context.Context, roots *storage.Roots, folder string, o dataset.Options) (*dataset.Snapshot, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a scan that is left to itself keeps nobody from the next one
	o.Questions = &dataset.Questions{}
	scan := func(alive func()) (*dataset.Snapshot, error) {
		o.Alive = alive
		return dataset.Open(ctx, folder, o)
	}
	shut := func(s *dataset.Snapshot) { _ = s.Close() }
	s, err := storage.DoOnce(ctx, roots.Of(folder), "list", scan, shut, o.Questions.Again)
	if hung, ok := err.(*storage.HungError); ok { //nolint:errorlint // what dataset.Open returns names the folder
		return nil, fmt.Errorf("open data set %s: %w", folder, hung)
	}
	return s, err
}
