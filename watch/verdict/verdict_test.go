package verdict_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/watch/verdict"
)

var nan = math.NaN()

// facts is a job of 100 steps of which nothing but the waits is known.
func facts(wait, idle float64) verdict.Facts {
	return verdict.Facts{Steps: 100, Wait: wait, Idle: idle, GPUBusy: nan, HostBusy: nan,
		Nodes: verdict.Nodes{All: 9, Ready: 9, Cores: 144, Busy: nan, Full: nan, Read: nan, IOWait: nan, MissingCopies: nan}}
}

func with(f verdict.Facts, change func(*verdict.Facts)) verdict.Facts {
	change(&f)
	return f
}

// The law is one for all that judge by a training loop's own numbers.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Thresholds struct {
			DataBound float64 `json:"data_bound"`
			FewSteps  int     `json:"few_steps"`
		}
		Cases []struct {
			Steps      int
			GPU        bool
			Wait, Idle *float64
			Verdict    string
		}
	}
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors.Cases) < 20 {
		t.Fatal(err, len(vectors.Cases))
	}
	if l := vectors.Thresholds; l.DataBound != verdict.BoundShare || l.FewSteps != verdict.FewSteps {
		t.Errorf("the table has %+v, this package %g and %d", l, verdict.BoundShare, verdict.FewSteps)
	}
	for _, c := range vectors.Cases {
		f := facts(*c.Wait, nan)
		if f.Steps = c.Steps; c.Idle != nil {
			f.Idle = *c.Idle
		}
		if f.IdleUnmeasured = c.GPU && c.Idle == nil; c.Idle != nil && !c.GPU {
			t.Errorf("%+v: the idle of no GPU", c)
		}
		if got := verdict.Judge(f); got.Verdict != c.Verdict {
			t.Errorf("%+v: idle %g: %+v", c, f.Idle, got)
		}
	}
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		facts                  verdict.Facts
		verdict, cause, action string
	}{
		"fed":                     {facts(0.001, 0.0), verdict.Healthy, "", ""},
		"fed, no meter":           {facts(0.001, nan), verdict.Healthy, "", ""},
		"a little idle":           {facts(0.3, 0.07), verdict.Healthy, "7.0 % of the time, less than the 10 %", ""},
		"a little wait, no meter": {facts(0.07, nan), verdict.Healthy, "next blocks 7.0 % of the time", ""},
		"wait that nobody feels":  {facts(0.6, 0.0), verdict.Healthy, "while the GPU still works", ""},
		"GPU idle, but fed":       {with(facts(0, 0), func(f *verdict.Facts) { f.GPUBusy = 0.4 }), verdict.NotData, "40 %", "stages"},
		"GPU busy and fed":        {with(facts(0, 0), func(f *verdict.Facts) { f.GPUBusy = 0.9 }), verdict.Healthy, "", ""},
		"GPU unknown is not idle": {with(facts(0, 0), func(f *verdict.Facts) { f.GPUBusy = nan }), verdict.Healthy, "", ""},
		"few steps":               {with(facts(0.9, 0.9), func(f *verdict.Facts) { f.Steps = 3 }), verdict.Unknown, "only 3 steps", ""},
		"nothing at all":          {verdict.Facts{Wait: nan, Idle: nan}, verdict.Unknown, "only 0 steps", ""},
		"nodes' cores": {with(facts(0.4, 0.31), func(f *verdict.Facts) { f.Nodes.Busy, f.Nodes.Read, f.HostBusy = 0.97, 0.03, 0.18 }), verdict.DataBound,
			"node CPU: 139.7 of 144 cores busy; not storage 3 %, this host 18 %", "9 → 15 nodes: 31 % → under 2 %"},
		"nodes' cores, told by their queues": {with(facts(0.4, nan), func(f *verdict.Facts) { f.Nodes.Full = 1 }), verdict.DataBound,
			"all that are up have work queued", "9 → 18 nodes at most"},
		"nodes' cores, and how many are wanted is measured": {with(facts(0.4, 0.31), func(f *verdict.Facts) { f.Nodes.Busy, f.Wanted = 0.97, 14 }), verdict.DataBound,
			"node CPU", "9 → 14 nodes: 31 % → under 2 %"},
		"nodes' cores, a moment in which not all are in use": {with(facts(0.4, 0.31), func(f *verdict.Facts) { f.Nodes.Busy, f.Nodes.Full, f.HostBusy = 0.7, 1, 0.99 }),
			verdict.DataBound, "node CPU: 100.8 of 144", "9 → 15"},
		"pictures that lack a copy": {with(facts(0.4, 0.31), func(f *verdict.Facts) { f.Nodes.Busy, f.Nodes.MissingCopies = 0.97, 0.3 }), verdict.DataBound,
			"node CPU", "--index-copies first: 30 % of the pictures have no copy, which decodes faster; then 9 → 15 nodes"},
		"few pictures that lack one": {with(facts(0.4, 0.31), func(f *verdict.Facts) { f.Nodes.Busy, f.Nodes.MissingCopies = 0.97, 0.2 }), verdict.DataBound,
			"node CPU", "9 → 15 nodes: 31 % → under 2 %"},
		"a queue that cores which rest do not get to": {with(facts(0.4, 0.31), func(f *verdict.Facts) { f.Nodes.Busy, f.Nodes.Full = 0.3, 1 }),
			verdict.DataBound, "the way between", "network"},
		"a node's view": {with(facts(0.4, 0.31), func(f *verdict.Facts) { f.Nodes.Busy, f.Nodes.Partial, f.Wanted = 0.97, true, 14 }), verdict.DataBound,
			"node CPU", "14 nodes like this one"},
		"own cores": {with(facts(0.5, 0.5), func(f *verdict.Facts) {
			f.Nodes = verdict.Nodes{Local: true, All: 1, Ready: 1, Cores: 8, Busy: 1, Read: nan, IOWait: nan}
		}),
			verdict.DataBound, "this host's CPU: 8.0 of 8 cores", "8 → 19"},
		"own host, used by others": {with(facts(0.5, nan), func(f *verdict.Facts) {
			f.HostBusy, f.Nodes = 1, verdict.Nodes{Local: true, All: 1, Ready: 1, Cores: 8, Busy: 0.12, Full: 0, Read: nan, IOWait: nan}
		}),
			verdict.DataBound, "this host's CPU: 100 % of it in use, 12 % by", "other work"},
		"own host, which rests": {with(facts(0.5, nan), func(f *verdict.Facts) {
			f.HostBusy, f.Nodes = 0.3, verdict.Nodes{Local: true, All: 1, Ready: 1, Cores: 8, Busy: 0.12, Full: 0, Read: nan, IOWait: nan}
		}),
			verdict.DataBound, "not known: this host has cores to spare", ""},
		"storage": {with(facts(0.5, 0.5), func(f *verdict.Facts) { f.Nodes.Busy, f.Nodes.Read = 0.2, 0.8 }), verdict.DataBound, "storage: workers spend 80 %", "storage"},
		"host":    {with(facts(0.5, 0.5), func(f *verdict.Facts) { f.Nodes.Busy, f.HostBusy = 0.2, 0.99 }), verdict.DataBound, "this host's CPU: 99 %", ""},
		"nodes down": {with(facts(0.5, 0.5), func(f *verdict.Facts) { f.Nodes.Busy, f.Nodes.Ready, f.Nodes.Trouble = 0.2, 6, "cpu-3: refused" }),
			verdict.DataBound, "6 of 9 nodes take work: cpu-3: refused", "bring"},
		"nodes down, the others at their limit": {with(facts(0.5, 0.5), func(f *verdict.Facts) { f.Nodes.Busy, f.Nodes.Ready = 0.99, 6 }), verdict.DataBound,
			"cores busy; only 6 of 9 nodes", "6 → 14 nodes"},
		"all down": {with(facts(0, 0), func(f *verdict.Facts) { f.Blocked, f.Nodes.Ready = 20, 0 }), verdict.DataBound, "none of 9 nodes", "feedwater serve"},
		"stuck":    {with(facts(0, 0), func(f *verdict.Facts) { f.Blocked, f.Nodes.Busy = 20, 0.1 }), verdict.DataBound, "blocked in next for 20 s; the way between", ""},
		"link":     {with(facts(0.5, 0.4), func(f *verdict.Facts) { f.Nodes.Busy = 0.3 }), verdict.DataBound, "the way between: nodes have cores to spare; not node CPU 30 %", "network"},
		"unknown":  {facts(0.5, 0.4), verdict.DataBound, "not known yet", ""},
	} {
		got := verdict.Judge(c.facts)
		if got.Verdict != c.verdict || !strings.Contains(got.Cause, c.cause) || !strings.Contains(got.Action, c.action) || c.cause == "" && got.Cause != "" {
			t.Errorf("%s: %+v", name, got)
		}
		if text := got.Cause + got.Action; strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s: unknown is shown as a number: %+v", name, got)
		}
	}
}
