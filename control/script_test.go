package control

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"
)

func scripts(t *testing.T) []script {
	t.Helper()
	text, err := os.ReadFile("testdata/scripts.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var all []script
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// Each script is a training run whose nodes follow the law; its bounds are what the law promises.
func TestScripts(t *testing.T) {
	for _, s := range scripts(t) {
		t.Run(s.Name, func(t *testing.T) {
			for seed := range uint64(3) {
				o := s.run(seed)
				t.Logf("seed %d: %.2f nodes needed, %d at the end, %d at most, %d changes, stall %.2f %%, node-hours %+.0f %%, idle until %.0f s",
					seed, o.needed, o.nodes, o.peak, o.changes, 100*o.stall, 100*o.hours, o.calm)
				s.Bounds.check(t, &o)
			}
		})
	}
}

func (b bounds) check(t *testing.T, o *outcome) {
	t.Helper()
	if b.Changes != nil && o.changes > *b.Changes {
		t.Errorf("%d changes, at most %d", o.changes, *b.Changes)
	}
	if b.Nodes != nil && (o.nodes < b.Nodes[0] || o.nodes > b.Nodes[1]) {
		t.Errorf("%d nodes at the end, want %v: %v", o.nodes, *b.Nodes, o.wanted)
	}
	if b.CalmAfter > 0 && o.calm > b.CalmAfter {
		t.Errorf("idle until %.0f s, at most %.0f: %v", o.calm, b.CalmAfter, o.wanted)
	}
	if b.Hours > 0 && o.hours > b.Hours {
		t.Errorf("node-hours %+.1f %%, at most %+.0f %%", 100*o.hours, 100*b.Hours)
	}
	if b.Stall > 0 && o.stall > b.Stall {
		t.Errorf("stall %.2f %%, at most %.2f %%", 100*o.stall, 100*b.Stall)
	}
	if b.Peak > 0 && float64(o.peak) > math.Ceil(b.Peak*o.needed) {
		t.Errorf("%d nodes at most, %.2f needed: %v", o.peak, o.needed, o.wanted)
	}
	b.checkDemand(t, o)
}

func (b bounds) checkDemand(t *testing.T, o *outcome) {
	t.Helper()
	sum, n := 0.0, 0.0
	for i, r := range o.readings {
		if i > 0 && r.Demand > 0 {
			sum, n = sum+r.Demand, n+1
			if b.Demand > 0 && math.Abs(r.Demand/o.demand-1) > 0.05 { // a period holds 75 steps
				t.Errorf("at %.0f s demand %.0f, is %.0f", o.at[i], r.Demand, o.demand)
			}
		}
		if b.Back[0] > 0 && o.at[i] >= b.Back[1] && float64(o.wanted[i]) > math.Ceil(b.Back[0]*o.needed) {
			t.Errorf("at %.0f s %d nodes, %.2f needed: %v", o.at[i], o.wanted[i], o.needed, o.wanted)
			return
		}
	}
	if mean := sum / n; b.Demand > 0 && math.Abs(mean/o.demand-1) > b.Demand {
		t.Errorf("mean demand %.0f, is %.0f", mean, o.demand)
	}
}
