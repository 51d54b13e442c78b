package agent

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/span"
)

const trainerSpan = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func spanPacket(rank uint32, parent string) []byte {
	return append(binary.LittleEndian.AppendUint32([]byte{kindSpan}, rank), parent...)
}

func returnedPacket(id uint64, wait float64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64([]byte{kindReturned}, id), math.Float64bits(wait))
}

// said is an attribute in words; empty if it is not there.
func said(s *tracetest.SpanStub, key attribute.Key) string {
	set := attribute.NewSet(s.Attributes...)
	v, _ := set.Value(key)
	return v.String()
}

// A batch's span is the trainer's, as it was when the batch was wanted, and ends when the loop has it, with its wait.
func TestSpansOfBatches(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	tracer := sdk.NewTracerProvider(sdk.WithSyncer(kept)).Tracer("test")
	ended := make(chan struct{})
	t.Run("run", func(t *testing.T) {
		c := startWith(t, nil, Options{Connect: func(_ context.Context, p Plan) (*client.Fleet, error) {
			return client.New(client.Options{Plan: string(p.Text), Local: &fakeNode{}, Tracer: tracer})
		}})
		v, _ := c.call("open", map[string]any{"plan": map[string]any{}}, false)
		if v["traced"] != true {
			t.Errorf("traced is %v", v["traced"])
		}
		c.addSlots(5, nil)
		taken, failed, unused := want{id: 1, position: 20, count: 5}, want{id: 2, position: 13, count: 1, slot: 1}, want{id: 3, position: 30, count: 2, slot: 2, flags: flagListed}
		c.send(c.loader, spanPacket(3, trainerSpan))
		c.send(c.loader, wantPacket(taken))
		c.done(taken)
		c.send(c.loader, wantPacket(failed))
		if a := c.receive(); a[0] != kindFailed {
			t.Fatalf("%q", a)
		}
		c.send(c.loader, returnedPacket(77, 1)) // never heard of
		c.send(c.loader, returnedPacket(1, 0.25))
		c.send(c.loader, spanPacket(3, strings.Repeat("x", 60)))
		c.send(c.loader, wantPacket(unused))
		c.done(unused)
		close(ended)
	})
	<-ended
	var batches []*tracetest.SpanStub
	all := kept.GetSpans()
	for i := range all {
		if all[i].Name == span.Batch {
			batches = append(batches, &all[i])
		}
	}
	if len(batches) != 3 {
		t.Fatalf("%+v", batches)
	}
	failed, taken, unused := batches[0], batches[1], batches[2]
	if span.Format(taken.Parent) != trainerSpan || said(taken, span.Rank) != "3" || said(taken, span.Position) != "20" || said(taken, span.Samples) != "5" || said(taken, span.Wait) != "0.25" || said(taken, span.Outcome) != span.Done {
		t.Errorf("%+v", taken)
	}
	if span.Format(failed.Parent) != trainerSpan || said(failed, span.Outcome) != span.Failed || !strings.Contains(failed.Status.Description, "cat/13.jpg") {
		t.Errorf("%+v", failed)
	}
	if unused.Parent.IsValid() || said(unused, span.Position) != "30" || said(unused, span.Outcome) != span.Unused || len(unused.Events) != 1 || unused.EndTime.After(unused.Events[0].Time) {
		t.Errorf("%+v", unused)
	}
}

// What is no packet of these kinds is an error, and what was not taken does not pile up.
func TestSpansAreBounded(t *testing.T) {
	var s spans
	for _, bad := range [][]byte{nil, {1, 2, 3}} {
		if s.setParent(bad) == nil || s.handleReturned(bad) == nil {
			t.Errorf("%v is taken for a packet", bad)
		}
	}
	for _, wait := range []float64{math.NaN(), math.Inf(1), -1} {
		if err := s.handleReturned(returnedPacket(1, wait)[1:]); err != nil {
			t.Error(err)
		}
	}
	for id := range uint64(10 * mostSpans) {
		s.addSpan(id, &client.Span{})
		delete(s.open, id-1) // not ended: these are no real ones
	}
	if len(s.order) > mostSpans {
		t.Errorf("%d are kept", len(s.order))
	}
}
