package client_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/server"
)

// decoded is how many samples a node has decoded.
func decoded(t *testing.T, n *servedNode) int {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(n.server)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "feedwater_node_decoded_samples_total" {
			return int(f.Metric[0].GetCounter().GetValue())
		}
	}
	t.Fatal("no such metric")
	return 0
}

// Ten equal jobs with real pixels cost what one does, and get what it gets: half of them are slow, and have asked for
// much that they do not need yet when the others come and want it at once.
func TestTenEqualRealJobs(t *testing.T) {
	const jobs, batch, lead = 10, 8, 5
	root := photos(t)
	if loader.Checked { // the race detector learns nothing from more pictures
		root = folder(t)
	}
	c := newCluster(t)
	p, err := pipeline.Open(pipeline.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	n := c.serve("a", server.Options{
		Engine: server.NewEngine(p, dataset.Options{CacheDir: filepath.Join(c.root, "a")}),
		Roots:  map[string]string{"photos": root}, ShareBytes: 1 << 30,
	}, p.Close)
	options := loader.Options{Options: c.realOptions(crops, "a"), Batch: batch, Epochs: 1}
	var slow, fast sync.WaitGroup
	turns := make(chan struct{}, 1<<16) // a step of a slow job each, and closed when the fast ones are done
	digests := make([]string, jobs)
	led := make(chan struct{}, jobs)
	for i := range jobs / 2 {
		l := newLoader(t, options)
		slow.Go(func() {
			digests[i] = paced(t, l, func(step int) {
				if step == lead {
					led <- struct{}{}
				}
				if step >= lead {
					<-turns
				}
			})
		})
	}
	for range jobs / 2 {
		<-led
	}
	for i := jobs / 2; i < jobs; i++ {
		l := newLoader(t, options)
		fast.Go(func() {
			digests[i] = paced(t, l, func(step int) {
				if step%4 == 0 {
					turns <- struct{}{}
				}
			})
		})
	}
	fast.Wait()
	close(turns)
	slow.Wait()
	alone := newLoader(t, options)
	info, err := alone.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if made := decoded(t, n); made > int(info.Samples) {
		t.Errorf("%d samples were decoded for ten jobs, where one needs %d", made, info.Samples)
	}
	want := digest(t, alone, 1)
	for i, got := range digests {
		if got != want {
			t.Errorf("job %d got %s, one alone %s", i, got, want)
		}
	}
}

// paced is digest for one epoch of a loop that does something before each step.
func paced(t *testing.T, l *loader.Loader, before func(step int)) string {
	d, step := loader.NewDigest(), 0
	for b, err := range l.Batches(t.Context()) {
		if err == nil {
			err = d.Add(b)
		}
		if err != nil {
			t.Error(err)
			break
		}
		b.Release()
		before(step)
		step++
	}
	return fmt.Sprintf("%d %s", d.Samples(), d.Sum())
}
