package client_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
	"github.com/feedwater-io/feedwater/span"
	"github.com/feedwater-io/feedwater/span/spantest"
)

const trainerSpan = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"

// traced runs some batches on a good node and one that becomes slow, all of which send their spans to one collector;
// environment says how.
func traced(t *testing.T, batches int, environment map[string]string) (*spantest.Collector, client.Effort) {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", spantest.Endpoint)
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "65536")
	for k, v := range environment {
		t.Setenv(k, v)
	}
	collector := spantest.New()
	var exporters []*span.Exporter
	tracer := func(service string) trace.Tracer {
		e := span.Open(span.Options{Service: service, Connect: collector.Connect})
		exporters = append(exporters, e)
		return e.Tracer()
	}
	c := newCluster(t)
	slow := func(_ *batch.Name, r *pipeline.Result) {
		r.Slowest = []pipeline.Timing{{Index: 7, Key: "cat/slow.jpg", Begun: r.Begun, Read: time.Second, Queued: 2 * time.Second, Made: 4 * time.Second}}
	}
	good := &servertest.Engine{Samples: 1 << 14, SampleTime: 10 * time.Millisecond}
	bad := &servertest.Engine{Samples: 1 << 14, SampleTime: 10*time.Millisecond + 997}
	good.Result = slow
	nodes := []*servedNode{c.start("good", good, server.Options{Tracer: tracer("good")}), c.start("bad", bad, server.Options{Tracer: tracer("bad")})}
	o := c.options("good", "bad")
	o.Job, o.Tracer = "rn50", tracer("trainer")
	l := newLoader(t, loader.Options{Options: o, Batch: 8, Rank: 1, Ranks: 2, Window: 6})
	taken := 0
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		if taken++; taken == batches/5 {
			bad.SetSampleTime(time.Second)
		}
		if taken == batches {
			break
		}
	}
	time.Sleep(time.Second)
	effort := l.Fleet().Effort()
	l.Close()
	for _, n := range nodes {
		n.kill()
	}
	for _, e := range exporters {
		e.Close()
	}
	collector.Close()
	return collector, effort
}

// A batch can be followed from the loop to node and file, over all attempts at it.
func TestSpansOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const batches = 200
		c, effort := traced(t, batches, map[string]string{"TRACEPARENT": trainerSpan + "1"})
		done, attempts, hedges, moves := 0, 0, 0, 0
		for _, b := range c.Named(span.Batch, "") {
			if b.Parent != trainerSpan[36:52] || b.Service != "trainer" || b.Said["job"] != "rn50" || b.Said["rank"] != "1" || b.Said["epoch"] != "0" || b.Said["samples"] != "8" {
				t.Fatalf("%+v", b)
			}
			if b.Said["outcome"] == span.Unused { // wanted ahead of the loop, which ended
				continue
			}
			if at := strconv.Itoa(16*done + 8); b.Said["position"] != at || b.Said["outcome"] != span.Done || b.Said["wait_seconds"] == "" || len(b.Events) != 1 {
				t.Fatalf("at %s: %+v", at, b)
			}
			done++
			of := c.Named(span.Attempt, b.ID)
			attempts += len(of)
			hedge, move, won := checkAttempts(t, c, of)
			if won != 1 {
				t.Fatalf("%d of its attempts brought %+v: %+v", won, b, of)
			}
			hedges += hedge
			moves += move
		}
		t.Logf("%d batches, %d attempts; %+v", done, attempts, effort)
		if done != batches || hedges == 0 || moves == 0 || hedges > int(effort.Hedges) || moves > int(effort.Moves) {
			t.Errorf("%d batches, %d hedges and %d moves; the fleet: %+v", done, hedges, moves, effort)
		}
		checkTree(t, c)
	})
}

// checkAttempts looks at the attempts at a batch that the loop has: it counts hedges, moves, and those that brought it.
func checkAttempts(t *testing.T, c *spantest.Collector, attempts []spantest.Span) (hedges, moves, won int) {
	t.Helper()
	for _, a := range attempts {
		makes := c.Named(span.Make, a.ID)
		if len(makes) > 1 || len(makes) == 1 && makes[0].Service != a.Said["node"] {
			t.Fatalf("%+v was made by %+v", a, makes)
		}
		if a.Said["hedge"] == "true" {
			hedges++
		}
		switch a.Said["outcome"] {
		case span.Cancelled:
			if a.Said["reason"] == "moved" {
				moves++
			}
		case span.Done:
			won++
			checkMade(t, c, a, makes)
		}
	}
	return hedges, moves, won
}

// checkMade looks at what a node says of a batch that it sent.
func checkMade(t *testing.T, c *spantest.Collector, a spantest.Span, makes []spantest.Span) {
	t.Helper()
	if len(makes) != 1 || makes[0].Said["outcome"] != span.Done || makes[0].Said["bytes"] == "0" || makes[0].Said["make_seconds"] == "" || makes[0].Said["queued_seconds"] != a.Said["queued_seconds"] {
		t.Fatalf("%+v: %+v", a, makes)
	}
	samples := c.Named(span.Sample, makes[0].ID)
	if a.Said["node"] == "bad" {
		if len(samples) != 0 {
			t.Fatalf("%+v", samples)
		}
		return
	}
	if len(samples) != 1 {
		t.Fatalf("%+v", samples)
	}
	s := samples[0]
	if s.Said["key"] != "cat/slow.jpg" || s.Said["index"] != "7" || s.Said["read_seconds"] != "1" || s.Said["queued_seconds"] != "2" || s.Said["make_seconds"] != "4" || s.Nanos != 7e9 {
		t.Fatalf("%+v", s)
	}
}

// checkTree: every span is where its kind belongs, in the trainer's trace.
func checkTree(t *testing.T, c *spantest.Collector) {
	t.Helper()
	above := map[string]string{span.Attempt: span.Batch, span.Make: span.Attempt, span.Sample: span.Make}
	names := map[string]string{}
	for _, s := range c.Spans() {
		names[s.ID] = s.Name
	}
	for _, s := range c.Spans() {
		if s.Trace != trainerSpan[3:35] || s.Name != span.Batch && names[s.Parent] != above[s.Name] {
			t.Errorf("%+v is below a %q", s, names[s.Parent])
		}
	}
}

// What the root leaves out nobody makes a span of, whatever the nodes would.
func TestSpansThatAreNotSampled(t *testing.T) {
	for name, environment := range map[string]map[string]string{
		"parent": {"TRACEPARENT": trainerSpan + "0"}, "sampler": {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c, _ := traced(t, 8, environment); len(c.Spans()) != 0 {
					t.Errorf("%+v", c.Spans())
				}
			})
		})
	}
}

// Where nobody traces, a want costs nothing more.
func TestNoSpansCostNothing(t *testing.T) {
	f, err := client.New(client.Options{Plan: plan, Nodes: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name := rangeOf(0, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		s := f.Span(name, 0, trace.SpanContext{})
		s.Taken(0)
		s.Drop()
	}); n != 0 || f.Traced() {
		t.Errorf("%v allocations", n)
	}
}

// A want of a batch that is not sampled carries nothing.
func TestUnsampledWantsCarryNothing(t *testing.T) {
	f, err := client.New(client.Options{Plan: plan, Nodes: []string{"127.0.0.1:1"}, Tracer: sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample())).Tracer("test")})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if s := f.Span(rangeOf(0, 0, 8), 0, trace.SpanContext{}); s != nil || !f.Traced() {
		t.Errorf("%+v", s)
	}
}

// recorder keeps the spans of a process; they need no collector.
func recorder() (*tracetest.InMemoryExporter, trace.Tracer) {
	kept := tracetest.NewInMemoryExporter()
	return kept, sdk.NewTracerProvider(sdk.WithSyncer(kept)).Tracer("test")
}

// A want's failure is told with what the node said.
func TestSpanOfAFailure(t *testing.T) {
	c := newCluster(t)
	c.start("a", &servertest.Engine{Fail: func(*batch.Name) error {
		return &pipeline.SampleError{Index: 3, Key: "cat/broken.jpg", Op: "decode", Cause: pipeline.ErrClosed}
	}}, server.Options{})
	kept, tracer := recorder()
	o := c.options("a")
	o.Tracer = tracer
	f := c.open(o)
	name := rangeOf(0, 0, 8)
	done := make(chan client.Result, 1)
	f.Want(&client.Want{Name: name, Request: batch.Request{Dst: make([]byte, room)}, Span: f.Span(name, 0, trace.SpanContext{}), Done: func(r client.Result) { done <- r }})
	if r := <-done; r.Err == nil {
		t.Fatal("it was made")
	}
	for _, s := range kept.GetSpans() {
		if said := s.Status.Description; said == "" {
			t.Errorf("%s: %+v", s.Name, s)
		}
	}
	if n := len(kept.GetSpans()); n != 2 {
		t.Errorf("%d spans", n)
	}
}
