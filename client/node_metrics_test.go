package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// counted is a counter of some nodes, by the value of its label, empty where it has none.
func counted(t *testing.T, name string, nodes ...*servedNode) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for _, n := range nodes {
		r := prometheus.NewRegistry()
		r.MustRegister(n.server)
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.Metric {
				if f.GetName() == name {
					label := ""
					for _, l := range m.Label {
						label += l.GetValue()
					}
					all[label] += uint64(m.Counter.GetValue())
				}
			}
		}
	}
	return all
}

// What trainers do about a node that has become slow stands in the nodes' metrics: over all nodes as often as they did
// it.
func TestNodesCountWhatTrainersDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		good := &servertest.Engine{Samples: 1 << 14, SampleTime: 10 * time.Millisecond}
		bad := &servertest.Engine{Samples: 1 << 14, SampleTime: 10*time.Millisecond + 997}
		nodes := []*servedNode{c.start("good", good, server.Options{}), c.start("bad", bad, server.Options{})}
		l := newLoader(t, loader.Options{Options: c.options("good", "bad"), Batch: 8, Window: 6})
		taken := 0
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
			if taken++; taken == 40 {
				bad.SetSampleTime(time.Second)
			}
			if taken == 200 {
				break
			}
		}
		time.Sleep(time.Second) // what was told last arrives, and the fleet says what it did
		e := l.Fleet().Effort()
		hedges, cancelled := counted(t, "feedwater_node_hedges_total", nodes...)[""], counted(t, "feedwater_node_cancelled_wants_total", nodes...)
		t.Logf("%+v; nodes: %d hedges, cancelled %v", e, hedges, cancelled)
		if e.Hedges == 0 || hedges != e.Hedges || cancelled["overtaken"] != e.Hedges || e.Moves == 0 || cancelled["moved"] != e.Moves {
			t.Errorf("the trainer: %+v; the nodes: %d hedges, cancelled %v", e, hedges, cancelled)
		}
		l.Close()
	})
}
