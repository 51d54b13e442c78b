package local

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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
	if made[1].server == made[3].server || len(p.servers) != 2 {
		t.Errorf("%d pipelines for 1 and 3 workers", len(p.servers))
	}
}

// A folder is found on nodes by its fingerprint, for which nothing is decoded.
func TestMatchingStartsNoPipeline(t *testing.T) {
	p := New(Options{Log: slog.New(slog.DiscardHandler)})
	defer p.Close()
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "class"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "class", "1.jpg"), []byte("not read"), 0o600); err != nil {
		t.Fatal(err)
	}
	here, elsewhere, err := p.MatchByFingerprint(t.Context(), []byte(`{}`), folder, nil)
	if err != nil || !strings.Contains(here, "fingerprint") || strings.Contains(elsewhere, folder) {
		t.Errorf("%v: %s and %s", err, here, elsewhere)
	}
	if len(p.servers) != 0 {
		t.Error("a pipeline was started")
	}
}
