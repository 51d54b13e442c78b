package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/local"
	"github.com/feedwater-io/feedwater/server/tracing"
	"github.com/feedwater-io/feedwater/span"
)

// Without nodes a batch's span has what its own process tells of it below it, with the files that took longest.
func TestSpansWithoutNodes(t *testing.T) {
	dir := pictures(t, 1)
	kept := tracetest.NewInMemoryExporter()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	l := newLocalPipelines(slog.New(slog.DiscardHandler), newCores(), local.Options{Tracer: sdk.NewTracerProvider(sdk.WithSyncer(kept)).Tracer("test")})
	t.Cleanup(l.Close)
	f := openFleet(t, client.Options{Plan: at(crops, dir), Local: ownNode(t, l, 2), Tracer: l.tracer})
	info, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan client.Result, 1)
	name := rangeOf(0, uint32(info.Samples))
	of := f.Span(name, 0, trace.SpanContext{})
	f.Want(&client.Want{Name: name, Request: batch.Request{Dst: make([]byte, 8<<20)}, Span: of, Done: func(r client.Result) { result <- r }})
	if r := <-result; r.Err != nil {
		t.Fatal(r.Err)
	}
	of.Taken(0)
	below := map[string][]string{} // names by those of parents
	names := map[trace.SpanID]string{}
	for _, s := range kept.GetSpans() {
		names[s.SpanContext.SpanID()] = s.Name
	}
	for _, s := range kept.GetSpans() {
		above := names[s.Parent.SpanID()]
		below[above] = append(below[above], s.Name)
		if s.Name == span.Sample {
			set := attribute.NewSet(s.Attributes...)
			key, _ := set.Value(span.File)
			if _, err := os.Stat(filepath.Join(dir, key.AsString())); err != nil || key.AsString() == "" {
				t.Errorf("a sample of %q: %v", key.AsString(), err)
			}
		}
	}
	if !slices.Equal(below[""], []string{span.Batch}) || !slices.Equal(below[span.Batch], []string{span.Make}) || len(below[span.Make]) != tracing.SlowestSamples {
		t.Errorf("%v", below)
	}
}
