package local

import (
	"log/slog"
	"testing"
)

// Loaders that ask for as many workers share a pipeline.
func TestOnePipelinePerNumberOfWorkers(t *testing.T) {
	p := New(Options{Log: slog.New(slog.DiscardHandler)})
	defer p.Close()
	made := map[int]*Node{}
	for _, workers := range []int{1, 3, 1, 3} {
		n, err := p.Node(workers, "")
		if err != nil {
			t.Fatal(err)
		}
		if before := made[workers]; before != nil && before.server != n.server {
			t.Errorf("a second pipeline of %d workers", workers)
		}
		made[workers] = n
	}
	if made[1].server == made[3].server || p.Count() != 2 {
		t.Errorf("%d pipelines for 1 and 3 workers", p.Count())
	}
}
