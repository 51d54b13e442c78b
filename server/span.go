package server

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

// How many samples of a batch are told of: the slowest ones, and broken ones.
const (
	tracedSamples = 3
	tracedErrors  = 3
)

// beginSpan begins the span of making a batch; nil where nobody traces it.
func (j *Job) beginSpan(traceparent string, at time.Time) trace.Span {
	if j.tracer == nil || traceparent == "" {
		return nil
	}
	parent := span.Parse(traceparent)
	if !parent.IsSampled() {
		return nil
	}
	_, s := j.tracer.Start(span.Below(parent), span.Make, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(at))
	if !s.IsRecording() {
		return nil
	}
	return s
}

// traceWant traces a want that is about to be submitted, if its trainer does, until Done.
func (j *Job) traceWant(w *Want, name batch.Name) {
	s := j.beginSpan(w.Traceparent, time.Now())
	if s == nil {
		return
	}
	s.SetAttributes(span.Epoch.Int64(int64(name.Epoch)), span.Samples.Int(name.Len()))
	w.slowest = tracedSamples
	done := w.Done
	w.Done = func(m Made) {
		j.endSpan(s, &m)
		done(m)
	}
}

// traceRefusal traces a want that was not taken on.
func (j *Job) traceRefusal(traceparent string, at time.Time, err error) {
	if s := j.beginSpan(traceparent, at); s != nil {
		j.endSpan(s, &Made{Failure: toFailure(err)})
	}
}

// endSpan tells what became of a want.
func (j *Job) endSpan(s trace.Span, m *Made) {
	for i := range m.slowest {
		j.sampleSpan(s, &m.slowest[i])
	}
	errs := m.Header.GetErrors()
	if e := m.Failure.GetSampleError(); e != nil {
		errs = []*pb.SampleError{e}
	}
	for _, e := range errs[:min(len(errs), tracedErrors)] {
		s.AddEvent(span.Broken, trace.WithAttributes(describeBroken(e)...))
	}
	now := time.Now()
	if !m.begun.IsZero() {
		s.SetAttributes(span.Made.Float64(now.Sub(m.begun).Seconds()))
	}
	switch {
	case m.Failure == nil:
		s.SetAttributes(span.Outcome.String(span.Done), span.Shared.Bool(m.Shared), span.Bytes.Int(len(m.Data)),
			span.Queued.Float64(m.Header.GetQueuedSeconds()), span.CoreSeconds.Float64(m.Header.GetCoreSeconds()))
	case codes.Code(m.Failure.Code) == codes.Canceled:
		s.SetAttributes(span.Outcome.String(span.Cancelled))
	default:
		s.SetAttributes(span.Outcome.String(span.Failed))
		s.SetStatus(otelcodes.Error, span.Text(m.Failure.Message))
	}
	s.End(trace.WithTimestamp(now))
}

func describeBroken(e *pb.SampleError) []attribute.KeyValue {
	return []attribute.KeyValue{span.File.String(span.Text(filename.Text(string(e.Key)))), span.Index.Int64(int64(e.Index)), span.Op.String(span.Text(e.Op)), span.Reason.String(span.Text(e.Cause))}
}

// sampleSpan tells of one sample of a batch.
func (j *Job) sampleSpan(of trace.Span, t *pipeline.Timing) {
	_, s := j.tracer.Start(span.Below(of.SpanContext()), span.Sample, trace.WithTimestamp(t.Begun), trace.WithAttributes(
		span.File.String(span.Text(filename.Text(t.Key))), span.Index.Int64(int64(t.Index)),
		span.Read.Float64(t.Read.Seconds()), span.Queued.Float64(t.Queued.Seconds()), span.Made.Float64(t.Made.Seconds()),
	))
	s.End(trace.WithTimestamp(t.Begun.Add(t.Took())))
}
