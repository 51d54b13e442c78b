package server_test

import (
	"testing"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
	"github.com/feedwater-io/feedwater/server"
)

// Data that were opened before their storage came back are never asked whether they are the same: that may hang for
// ever.
func TestDataOfAnotherTurnAreNotTheSame(t *testing.T) {
	p, err := pipeline.Open(pipeline.Options{Workers: 1})
	treetest.Must(t, err)
	defer p.Close()
	root := treetest.Grow(t, t.TempDir()+"/root", "a/x.jpg")
	e, cache := server.NewEngine(p, dataset.Options{}), t.TempDir()
	open := func(generation uint64) *dataset.Snapshot {
		s, err := dataset.Open(t.Context(), root, dataset.Options{CacheDir: cache, Generation: generation})
		treetest.Must(t, err)
		t.Cleanup(func() { treetest.Must(t, s.Close()) })
		return s
	}
	earlier, later, last := open(0), open(1), open(1)
	if e.Same(earlier, later) || !e.Same(later, last) {
		t.Errorf("the same: %v in another generation, %v in one generation", e.Same(earlier, later), e.Same(later, last))
	}
}
