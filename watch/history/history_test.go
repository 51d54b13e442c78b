package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/history"
)

func value(v float64) *float64 { return &v }

// overview has one job of one rank, on one node.
func overview(job *pb.JobStatus, rank *pb.RankStatus) *watch.Overview {
	job.Job, job.Plan, job.Nodes = "rn50", "plan", 1
	job.Ranks = []*pb.RankStatus{rank}
	return &watch.Overview{
		Time: time.Now(), Jobs: []*pb.JobStatus{job},
		Nodes: []*pb.NodeStatus{{Addr: "cpu-1:7070", State: "ready", SamplesPerSecond: 640}},
	}
}

func working(wait float64) *watch.Overview {
	return overview(&pb.JobStatus{Wait: value(wait), Supply: value(100)}, &pb.RankStatus{Rank: 0, StepP50: 0.1, Wait: wait})
}

var (
	job  = history.Subject{Job: "rn50", Plan: "plan", Rank: history.AllRanks}
	rank = history.Subject{Job: "rn50", Plan: "plan", Rank: 0}
	node = history.Subject{Node: "cpu-1:7070"}
)

// text is a figure, one letter for each point of the last n: ? is unknown, others are tenths.
func text(h *history.History, s history.Subject, figure string, n int) string {
	all, b := h.Of(s, time.Now()).Figures[figure], strings.Builder{}
	for _, v := range all[max(0, len(all)-n):] {
		if math.IsNaN(float64(v)) {
			b.WriteByte('?')
		} else {
			fmt.Fprintf(&b, "%.0f", 10*v)
		}
	}
	return b.String()
}

func TestRunRemembersTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, calls := history.New(), 0
		ctx, end := context.WithCancel(t.Context())
		go h.Run(ctx, func() *watch.Overview {
			calls++
			if calls > 2 && calls < 5 {
				time.Sleep(time.Second) // late within its slot
			}
			return working(float64(calls%10) / 10)
		})
		time.Sleep(12 * history.Every)
		if got := text(h, job, "wait", 15); got != "???123456789012" {
			t.Errorf("%s", got)
		}
		time.Sleep(200 * history.Every)
		if got := text(h, job, "wait", 200); len(got) != history.Slots || strings.Contains(got, "?") || !strings.HasSuffix(got, "9012") {
			t.Errorf("%d points: %s", len(got), got)
		}
		end()
		synctest.Wait()
		if calls != 212 {
			t.Errorf("%d looks in 212 slots", calls)
		}
		time.Sleep(3 * history.Every)
		h.Add(working(0.5))
		if got := text(h, job, "wait", 5); got != "2???5" {
			t.Errorf("after a rest: %s", got)
		}
	})
}

func TestUnknownIsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := history.New()
		add := func(o *watch.Overview) {
			time.Sleep(history.Every)
			o.Time = time.Now()
			h.Add(o)
		}
		add(working(0.3))
		add(working(0)) // known
		time.Sleep(2 * history.Every)
		add(overview(&pb.JobStatus{Wait: value(0.3)}, &pb.RankStatus{StepP50: 0.1, Silent: durationpb.New(9 * time.Second)}))
		add(overview(&pb.JobStatus{}, &pb.RankStatus{})) // before its first step
		add(overview(&pb.JobStatus{Wait: value(0.3), Supply: value(100)}, &pb.RankStatus{StepP50: 0.1, Blocked: durationpb.New(6 * time.Second)}))
		for figure, want := range map[string]string{"wait": "?30????10", "idle": "????????", "images_per_second": "?10001000????0", "nodes": "?1010??101010"} {
			if got := text(h, job, figure, 8); got != want {
				t.Errorf("%s: %s, want %s", figure, got, want)
			}
		}
		if got := text(h, rank, "wait", 8); got != "?30????10" {
			t.Errorf("rank: %s", got)
		}
		o := working(0.3)
		o.Nodes[0].State = "failed"
		add(o)
		if got := text(h, node, "images_per_second", 2); got != "6400?" {
			t.Errorf("node: %s", got)
		}
		body, err := json.Marshal(h.Of(job, time.Now()))
		if err != nil || !strings.Contains(string(body), `null,0.3,0,null`) {
			t.Errorf("%s %v", body, err)
		}
	})
}

// What ended is remembered for ten minutes, and is gone then.
func TestForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := history.New()
		h.Add(working(0.3))
		time.Sleep(history.Slots*history.Every - history.Every)
		h.Add(&watch.Overview{Time: time.Now()})
		if got := text(h, job, "wait", history.Slots); got != "3"+strings.Repeat("?", history.Slots-1) {
			t.Errorf("%s", got)
		}
		time.Sleep(history.Every)
		h.Add(&watch.Overview{Time: time.Now()})
		if p := h.Of(job, time.Now()); p.Unknown == "" || len(p.Figures) != 0 {
			t.Errorf("%v", p)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	h := history.New()
	o := &watch.Overview{Time: time.Now()}
	for i := range 2 * history.MaxSubjects {
		o.Jobs = append(o.Jobs, &pb.JobStatus{Job: fmt.Sprint(i)})
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	h.Add(o)
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / history.MaxSubjects
	t.Logf("%.0f bytes a job", each)
	if each > 2500 {
		t.Errorf("%.0f bytes a job", each)
	}
	last := history.Subject{Job: fmt.Sprint(2*history.MaxSubjects - 1), Rank: history.AllRanks}
	if p := h.Of(last, time.Now()); !strings.Contains(p.Unknown, "too many") {
		t.Errorf("%v", p)
	}
	runtime.KeepAlive(o)
}

// When there is no room, what begins takes the place of what ended, and never of what goes on.
func TestEndedMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := history.New()
		add := func(names ...string) {
			o := &watch.Overview{}
			for _, name := range names {
				o.Jobs = append(o.Jobs, &pb.JobStatus{Job: name})
			}
			time.Sleep(history.Every)
			o.Time = time.Now()
			h.Add(o)
		}
		var many []string
		for i := range history.MaxSubjects {
			many = append(many, fmt.Sprint(i))
		}
		check := func(name string, remembered bool) {
			t.Helper()
			p := h.Of(history.Subject{Job: name, Rank: history.AllRanks}, time.Now())
			if (p.Unknown == "") != remembered {
				t.Errorf("%s: remembered is not %v: %q", name, remembered, p.Unknown)
			}
		}
		add(many...)
		add(append([]string{"early"}, many...)...)
		check("early", false)
		check("0", true)
		add(many[1:]...) // 0 ended first
		add(many[2:]...)
		add(append([]string{"new"}, many[2:]...)...)
		check("new", true)
		check("0", false)
		check("1", true)
		check("2", true)
	})
}
