package client_test

import (
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// Four ranks that step together take all that too few nodes can make, though the loop itself costs next to nothing, and
// take it evenly: no node makes what one rank needs much later while another waits, and no rank holds back what it
// needs first.
func TestRanksTogetherOnTooFewNodes(t *testing.T) {
	for nodes, longest := range map[int]time.Duration{2: 500 * time.Millisecond, 16: 250 * time.Millisecond} { // they make a step in 100 or 12 ms
		for _, unequal := range []float64{0, 0.5} {
			t.Run(fmt.Sprintf("%d nodes, unequal by %g", nodes, unequal), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { ranksTogether(t, nodes, unequal, longest) })
			})
		}
	}
}

// ranksTogether is a job on nodes of which the slowest takes so much longer than the fastest; no step may take longest.
func ranksTogether(t *testing.T, nodes int, unequal float64, longest time.Duration) {
	const (
		ranks, rate = 4, 20 // of a node, batches a second
		step        = time.Millisecond
		warm        = 10 * time.Second
	)
	watched := 60 * time.Second
	if testing.Short() {
		watched /= 4
	}
	c := newCluster(t)
	var addrs []string
	can := 0.0
	for i := range nodes {
		slower := 1 + unequal*float64(i)/float64(nodes-1)
		can += rate / slower
		addrs = append(addrs, fmt.Sprint("n", i))
		sample := time.Duration(float64(perSample(rate))*slower) + time.Duration(i)*997
		c.start(addrs[i], &servertest.Engine{Samples: 1 << 17, Cores: fleetCores, SampleTime: sample}, server.Options{})
	}
	var take []func()
	for k := range ranks {
		l := newLoader(t, loader.Options{Options: c.options(addrs...), Batch: fleetBatch, Rank: k, Ranks: ranks})
		next, stop := iter.Pull2(l.Batches(t.Context()))
		defer stop()
		take = append(take, func() {
			b, err, ok := next()
			if !ok || err != nil {
				t.Error(ok, err)
				return
			}
			b.Release()
		})
	}
	steps := func(d time.Duration) (n int, worst time.Duration) {
		for began := time.Now(); time.Since(began) < d && !t.Failed(); n++ {
			at := time.Now()
			var all sync.WaitGroup
			for _, one := range take {
				all.Go(one)
			}
			all.Wait()
			time.Sleep(step)
			worst = max(worst, time.Since(at))
		}
		return n, worst
	}
	steps(warm)
	n, worst := steps(watched)
	if got := float64(n*ranks) / watched.Seconds(); got < 0.99*can {
		t.Errorf("the job gets %.1f batches a second of nodes that make %.0f", got, can)
	}
	if worst > longest {
		t.Errorf("a step took %s", worst)
	}
	t.Logf("%.1f of %.0f batches a second; the longest step took %s", float64(n*ranks)/watched.Seconds(), can, worst)
}
