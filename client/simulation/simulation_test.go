package simulation

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/feedwater-io/feedwater/client/loader"
	"go.uber.org/goleak"
)

var (
	seeds   = flag.Uint64("seeds", usualSeeds, "how many seeds TestSeeds runs, from 1 on")
	replays = flag.Uint64("replays", usualReplays, "how many seeds TestSameSeedSameTrace runs twice, from 1 on")
	first   = flag.Bool("first", false, "run seeds one after the other, and stop at the first that fails")
	only    = flag.Uint64("seed", 0, "the only seed that TestSeeds runs, and prints; 0: see -seeds")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSeeds runs many seeds. Whatever is done to nodes, links and membership, the promise holds.
func TestSeeds(t *testing.T) {
	calm := &calm{t: t, runs: map[shape]*stream{}}
	if *only != 0 {
		check(t, *only, calm)
		return
	}
	for s := uint64(1); s <= *seeds && (!*first || !t.Failed()); s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			if !*first {
				t.Parallel()
			}
			check(t, s, calm)
		})
	}
}

// once are seeds that found something among 20,000: a list of nodes that names the only one with other data, storage
// trouble or damage at the only node listed, more batches at nodes that hang than hedges were earned, nodes that hang
// before three batches have come, or two, a batch that was sent to one node that hangs after the other, though a third
// had nothing to do, a frozen node that got wants in place of those moved, and a list of nodes that lacks the only one
// that fits for a while, before the first batch and later.
var once = []uint64{19841, 18872, 17848, 12217, 17544, 1397, 3743, 16015, 8888, 4591, 3853, 5783, 16244, 11429, 11079}

// TestSeedsThatFoundSomething runs them again.
func TestSeedsThatFoundSomething(t *testing.T) {
	calm := &calm{t: t, runs: map[shape]*stream{}}
	for _, s := range once {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Parallel()
			check(t, s, calm)
		})
	}
}

// check runs a seed and compares its stream with a calm one.
func check(t *testing.T, seed uint64, calm *calm) {
	s := newScenario(seed)
	want := calm.run(s.shape)
	w, err := play(t, s, want.state)
	if err != nil {
		w.wrong = append(w.wrong, err.Error())
	}
	if len(w.wrong) == 0 {
		if got := w.digest(); got != want.digest {
			w.wrong = append(w.wrong, "the stream is not that of a calm run")
		}
	}
	if len(w.wrong) > 0 || *only != 0 {
		report(t, w)
	}
}

// report prints a run, and how to see it again.
func report(t *testing.T, w *world) {
	if *only != 0 {
		for _, e := range w.events() {
			fmt.Fprintln(os.Stdout, e)
		}
		t.Logf("log of the clients:\n%s", w.logged.String())
	}
	t.Logf("%s", w.scenario)
	if len(w.wrong) > 0 {
		t.Errorf("seed %d: %s\nto see it again: go test ./client/simulation -run 'TestSeeds$' -v -seed %d", w.seed, strings.Join(w.wrong, "\n  "), w.seed)
	}
}

// play runs a scenario in virtual time. An error tells that it came to a standstill, with goroutines that nothing can
// wake.
func play(t *testing.T, s *scenario, calm loader.State) (w *world, err error) {
	root := t.TempDir()
	w = &world{scenario: s}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	synctest.Test(t, func(*testing.T) {
		w = newWorld(s, root, calm)
		w.play()
	})
	return w, nil
}
