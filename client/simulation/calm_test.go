package simulation

import (
	"sync"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/client/loader"
)

// stream is what a run delivers: the digest of the ordered stream, and the state after it.
type stream struct {
	digest string
	state  loader.State
}

// calm knows the streams of runs that nothing is done to: one node, one rank.
type calm struct {
	t    *testing.T
	mu   sync.Mutex
	runs map[shape]*stream
}

func (c *calm) run(s shape) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.runs[s]; r != nil {
		return r
	}
	w, err := play(c.t, &scenario{
		seed: 1, shape: s, nodes: []time.Duration{5 * time.Millisecond}, batch: 7, step: time.Millisecond, held: 1, phases: []phase{{ranks: 1}},
	}, loader.State{})
	if err != nil || len(w.wrong) > 0 {
		c.t.Fatalf("a calm run: %v %q", err, w.wrong)
	}
	c.runs[s] = &stream{w.digest(), w.final}
	return c.runs[s]
}
