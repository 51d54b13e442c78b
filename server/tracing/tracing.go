// Package tracing makes the spans of batches that a node makes for trainers which trace them. docs/tracing.md.
package tracing

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/span"
)

// SlowestSamples is how many samples of a batch an Outcome should tell of: those that took longest.
const SlowestSamples = 3

// tracedErrors is how many broken samples of a batch are told of.
const tracedErrors = 3

// Span is the making of one batch.
type Span struct {
	tracer trace.Tracer
	of     trace.Span
}

// Outcome is what became of a want.
type Outcome struct {
	// Failure is nil if there is a batch: of Header, with so many Bytes. Shared tells that another want had it made.
	Failure *pb.Failure
	Header  *pb.Header
	Bytes   int
	Shared  bool
	// Begun is when the pipeline began it; zero: it did not. Slowest are the samples that took longest.
	Begun   time.Time
	Slowest []pipeline.Timing
}

// Begin begins the span of making a batch; nil where nobody traces it, which may be ended too.
func Begin(t trace.Tracer, traceparent string, at time.Time) *Span {
	if t == nil || traceparent == "" {
		return nil
	}
	parent := span.Parse(traceparent)
	if !parent.IsSampled() {
		return nil
	}
	_, s := t.Start(span.Below(parent), span.Make, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(at))
	if !s.IsRecording() {
		return nil
	}
	return &Span{t, s}
}

// SetName says which batch it is.
func (s *Span) SetName(n batch.Name) {
	s.of.SetAttributes(span.Epoch.Int64(int64(n.Epoch)), span.Samples.Int(n.Len()))
}

// End tells what became of the want.
func (s *Span) End(m Outcome) {
	if s == nil {
		return
	}
	for i := range m.Slowest {
		s.addSample(&m.Slowest[i])
	}
	errs := m.Header.GetErrors()
	if e := m.Failure.GetSampleError(); e != nil {
		errs = []*pb.SampleError{e}
	}
	for _, e := range errs[:min(len(errs), tracedErrors)] {
		s.of.AddEvent(span.Broken, trace.WithAttributes(describeBroken(e)...))
	}
	now := time.Now()
	if !m.Begun.IsZero() {
		s.of.SetAttributes(span.Made.Float64(now.Sub(m.Begun).Seconds()))
	}
	switch {
	case m.Failure == nil:
		s.of.SetAttributes(span.Outcome.String(span.Done), span.Shared.Bool(m.Shared), span.Bytes.Int(m.Bytes),
			span.Queued.Float64(m.Header.GetQueuedSeconds()), span.CoreSeconds.Float64(m.Header.GetCoreSeconds()))
	case codes.Code(m.Failure.Code) == codes.Canceled:
		s.of.SetAttributes(span.Outcome.String(span.Cancelled))
	default:
		s.of.SetAttributes(span.Outcome.String(span.Failed))
		s.of.SetStatus(otelcodes.Error, span.Text(m.Failure.Message))
	}
	s.of.End(trace.WithTimestamp(now))
}

func describeBroken(e *pb.SampleError) []attribute.KeyValue {
	return []attribute.KeyValue{span.File.String(span.Text(filename.Text(string(e.Key)))), span.Index.Int64(int64(e.Index)), span.Op.String(span.Text(e.Op)), span.Reason.String(span.Text(e.Cause))}
}

// addSample tells of one sample of the batch.
func (s *Span) addSample(t *pipeline.Timing) {
	_, sample := s.tracer.Start(span.Below(s.of.SpanContext()), span.Sample, trace.WithTimestamp(t.Begun), trace.WithAttributes(
		span.File.String(span.Text(filename.Text(t.Key))), span.Index.Int64(int64(t.Index)),
		span.Read.Float64(t.Read.Seconds()), span.Queued.Float64(t.Queued.Seconds()), span.Made.Float64(t.Made.Seconds()),
	))
	sample.End(trace.WithTimestamp(t.Begun.Add(t.Took())))
}
