package span

import (
	"context"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// textBytes is the length of trace context as W3C writes it: "00-", 32 digits of the trace, "-", 16 of the span, "-", 2
// of flags.
const textBytes = 55

// Format is the text that tells a peer of a span.
func Format(c trace.SpanContext) string {
	flags := "-00"
	if c.IsSampled() {
		flags = "-01"
	}
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + flags
}

// Parse reads what Format writes. Anything else, which a peer may send, is no span: the result is not valid.
func Parse(text string) trace.SpanContext {
	if len(text) != textBytes || text[:3] != "00-" || text[35] != '-' || text[52] != '-' || text != strings.ToLower(text) {
		return trace.SpanContext{}
	}
	of, err := trace.TraceIDFromHex(text[3:35])
	if err != nil {
		return trace.SpanContext{}
	}
	id, err := trace.SpanIDFromHex(text[36:52])
	if err != nil {
		return trace.SpanContext{}
	}
	flags, err := strconv.ParseUint(text[53:], 16, 8)
	if err != nil {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: of, SpanID: id, TraceFlags: trace.TraceFlags(flags) & trace.FlagsSampled, Remote: true,
	})
}

// Parent is the span that a trainer runs in: that of ctx, else that of the environment's TRACEPARENT. It may not be
// valid.
func Parent(ctx context.Context) trace.SpanContext {
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		return c
	}
	return Parse(os.Getenv("TRACEPARENT"))
}

// Below is a context whose span is c.
func Below(c trace.SpanContext) context.Context {
	return trace.ContextWithSpanContext(context.Background(), c)
}
