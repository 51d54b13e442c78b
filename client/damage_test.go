package client_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// A node that sends one damaged batch in seven makes what the job would miss otherwise, and nothing while the other one
// does.
func TestDamageCostsNoMoreThanItself(t *testing.T) {
	const (
		rate          = 20 // of each of two nodes, batches a second
		warm, watched = 10 * time.Second, 30 * time.Second
	)
	for name, c := range map[string]struct {
		period      time.Duration // of the loop
		least, most float64       // batches a second that the sick node makes
	}{
		"a loop that takes all":       {0, 0.8 * rate, 1.01 * rate},
		"a loop that one node feeds":  {time.Second / 10, 0, 0.1},
		"a loop that one node cannot": {time.Second / 30, 0.3 * rate, rate},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCluster(t)
				var made atomic.Int64
				sick := func(_ *batch.Name, r *pipeline.Result) {
					if made.Add(1)%7 == 0 {
						r.CRC32C ^= 1
					}
				}
				cluster.start("sick", &servertest.Engine{Samples: 1 << 14, Cores: fleetCores, SampleTime: perSample(rate), Result: sick}, server.Options{})
				cluster.start("well", &servertest.Engine{Samples: 1 << 14, Cores: fleetCores, SampleTime: perSample(rate)}, server.Options{})
				l := newLoader(t, loader.Options{Options: cluster.options("sick", "well"), Batch: fleetBatch})
				began := time.Now()
				before, steps := int64(0), 0
				for b, err := range l.Batches(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					b.Release()
					if time.Since(began) < warm {
						before = made.Load()
					} else if steps++; time.Since(began) > warm+watched {
						break
					}
					time.Sleep(max(c.period, time.Millisecond)) // a step takes some time
				}
				if got := float64(made.Load()-before) / watched.Seconds(); got < c.least || got > c.most {
					t.Errorf("the sick node makes %.2f batches a second, not between %.2f and %.2f", got, c.least, c.most)
				}
				if c.period > 0 {
					if want := float64(watched / c.period); float64(steps) < 0.99*want {
						t.Errorf("%d steps of %.0f", steps, want)
					}
				}
			})
		})
	}
}
