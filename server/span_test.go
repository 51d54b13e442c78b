package server_test

import (
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
	"github.com/feedwater-io/feedwater/span"
)

const attemptSpan = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// recorded is a node's options with a tracer, and what that makes.
func recorded(o server.Options) (server.Options, *tracetest.InMemoryExporter) {
	kept := tracetest.NewInMemoryExporter()
	o.Tracer = sdk.NewTracerProvider(sdk.WithSyncer(kept)).Tracer("test")
	return o, kept
}

// tracedWant is a want with trace context.
func tracedWant(id uint64, n *pb.Name, context string) *pb.FetchRequest {
	return &pb.FetchRequest{Request: &pb.FetchRequest_Want{Want: &pb.Want{Id: id, Name: n, Traceparent: context}}}
}

func said(s *tracetest.SpanStub, key attribute.Key) string {
	set := attribute.NewSet(s.Attributes...)
	v, _ := set.Value(key)
	return v.String()
}

// What a trainer sends in place of trace context makes no span, and changes no batch.
func TestTraceContextOfAPeerIsData(t *testing.T) {
	o, kept := recorded(server.Options{})
	n := newNode(t, &servertest.Engine{}, o)
	tr := n.started()
	for i, bad := range []string{
		"", "00", attemptSpan + "0", strings.ToUpper(attemptSpan), "ff" + attemptSpan[2:], attemptSpan[:53] + "00", strings.Repeat("-", 1<<20), attemptSpan[:10] + "\x00" + attemptSpan[11:],
	} {
		tr.send(tracedWant(uint64(i+1), rangeOf(0, 0, 8), bad))
		if a := tr.mustNext(); a.failure != nil || a.id != uint64(i+1) {
			t.Errorf("%.60q: %v", bad, a.failure)
		}
	}
	if all := kept.GetSpans(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// A span says what became of a want, whatever it was.
func TestSpansOfWants(t *testing.T) {
	broken := &pipeline.SampleError{Index: 3, Key: "cat/bro\xffken.jpg", Op: "decode", Cause: pipeline.ErrClosed}
	hang := make(chan struct{})
	e := &servertest.Engine{
		Delay: func(name *batch.Name) time.Duration {
			if name.Epoch == 4 {
				close(hang)
				return time.Hour
			}
			return 0
		},
		Fail: func(name *batch.Name) error {
			if name.Epoch == 3 {
				return broken
			}
			return nil
		},
		Result: func(_ *batch.Name, r *pipeline.Result) {
			r.Errors = []pipeline.SampleError{*broken}
			r.Slowest = []pipeline.Timing{{Index: 9, Key: "dog/\xff.jpg", Begun: r.Begun, Made: time.Second}}
		},
	}
	o, kept := recorded(server.Options{ShareBytes: 1 << 20})
	n := newNode(t, e, o)
	tr := n.started()
	for _, c := range []struct {
		name    *pb.Name
		outcome string
		shared  string
		samples int
		broken  int
	}{
		{rangeOf(0, 0, 8), span.Done, "false", 1, 1},
		{rangeOf(0, 0, 8), span.Done, "true", 0, 1}, // from the cache
		{rangeOf(3, 0, 8), span.Failed, "", 0, 1},
		{rangeOf(4, 0, 8), span.Cancelled, "", 0, 0},
		{rangeOf(0, 0, 0), span.Failed, "", 0, 0}, // no name
	} {
		kept.Reset()
		tr.send(tracedWant(uint64(100+len(c.outcome)+int(c.name.Epoch)), c.name, attemptSpan))
		if c.name.Epoch == 4 {
			<-hang
			tr.send(cancelOf(uint64(100 + len(c.outcome) + 4)))
		}
		tr.mustNext()
		all := kept.GetSpans()
		if len(all) != 1+c.samples {
			t.Fatalf("%s: %+v", c.outcome, all)
		}
		s := &all[len(all)-1]
		if s.Name != span.Make || s.Parent.SpanID().String() != attemptSpan[36:52] || said(s, span.Outcome) != c.outcome || c.outcome == span.Done && said(s, span.Shared) != c.shared {
			t.Errorf("%+v", s)
		}
		if len(s.Events) != c.broken || (s.Status.Description == "") == (c.outcome == span.Failed) {
			t.Errorf("%s: %+v, %+v", c.outcome, s.Events, s.Status)
		}
		for _, e := range s.Events {
			if key := e.Attributes[0].Value.AsString(); key != `cat/bro\udcffken.jpg` {
				t.Errorf("%q", key)
			}
		}
		if c.samples > 0 && (said(&all[0], span.File) != `dog/\udcff.jpg` || all[0].Parent.SpanID() != s.SpanContext.SpanID()) {
			t.Errorf("%+v", all[0])
		}
	}
}
