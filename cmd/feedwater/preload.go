package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
)

// sources are a flag of data sets as trainers name them: NAME, or NAME/PATH of a folder below it; several with commas between them.
type sources map[string]pipeline.Source

// Set implements pflag.Value.
func (s sources) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		root, path, _ := strings.Cut(part, "/")
		if root == "" || path != "" && !filepath.IsLocal(filepath.FromSlash(path)) {
			return fmt.Errorf("%q is neither NAME nor NAME/PATH", part)
		}
		s[part] = pipeline.Source{Root: root, Path: filename.Name(path)}
	}
	return nil
}

// String implements pflag.Value.
func (s sources) String() string { return strings.Join(s.sortedNames(), ",") }

// Type implements pflag.Value.
func (s sources) Type() string { return "NAME/PATH" }

func (s sources) isRepeatable() {}

func (s sources) sortedNames() []string { return slices.Sorted(maps.Keys(s)) }

// checkRoots refuses what is not among the folders that are served.
func (s sources) checkRoots(data folders) error {
	for _, name := range s.sortedNames() {
		if _, ok := data[s[name].Root]; !ok {
			return fmt.Errorf("--preload %s: --data has no folder of that name; it has %s", name, strings.Join(data.sortedNames(), ", "))
		}
	}
	return nil
}

// preloadAgain is how long after a failure a data set is tried again.
const preloadAgain = 5 * time.Second

// preloadAll has data sets listed, all at once, with load; until each is, the process is not ready. What fails is logged and tried again. The
// returned function waits for the end, which comes soon once ctx is over.
func (s sources) preloadAll(ctx context.Context, ready *readiness, load func(context.Context, pipeline.Source) error, log *slog.Logger) (wait func()) {
	var running sync.WaitGroup
	for _, name := range s.sortedNames() {
		done := ready.waitFor("the files of " + name)
		running.Go(func() {
			began := time.Now()
			for {
				err := load(ctx, s[name])
				if ctx.Err() != nil {
					return
				}
				if err == nil {
					log.Info("preloaded", "data", name, "took", time.Since(began))
					done()
					return
				}
				log.Warn("preloading failed, and is tried again: the node is not ready before", "data", name, "err", err)
				select {
				case <-time.After(preloadAgain):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return running.Wait
}
