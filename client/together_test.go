package client_test

import (
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// Four ranks that step together take all that too few nodes can make, though the loop itself costs nothing, and take it evenly: no node makes what
// one rank needs much later while another waits.
func TestRanksTogetherOnTooFewNodes(t *testing.T) {
	const (
		ranks, nodes, rate = 4, 2, 20 // of a node, batches a second
		warm, watched      = 10 * time.Second, 60 * time.Second
		longest            = 2 * time.Second // step, where nodes make one in 0.1 s; most often 0.3 s
	)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var addrs []string
		for i := range nodes {
			addrs = append(addrs, fmt.Sprint("n", i))
			c.start(addrs[i], &servertest.Engine{Samples: 1 << 14, Cores: fleetCores, SampleTime: perSample(rate) + time.Duration(i)*997}, server.Options{})
		}
		var take []func()
		for k := range ranks {
			l := newLoader(t, client.LoaderOptions{Options: c.options(addrs...), Batch: fleetBatch, Rank: k, Ranks: ranks})
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
				worst = max(worst, time.Since(at))
			}
			return n, worst
		}
		steps(warm)
		n, worst := steps(watched)
		if got, can := float64(n*ranks)/watched.Seconds(), float64(nodes*rate); got < 0.95*can {
			t.Errorf("the job gets %.1f batches a second of nodes that make %.0f", got, can)
		}
		if worst > longest {
			t.Errorf("a step took %s", worst)
		}
	})
}
