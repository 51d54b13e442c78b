package span

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options of an Exporter.
type Options struct {
	// Service and Version are what spans are said to come from, where OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES do
	// not say otherwise.
	Service, Version string
	// Log is told when spans cannot be sent, and when they can again. Nil: nobody is.
	Log *slog.Logger
	// Connect makes the connection of OTLP over gRPC; nil: as the environment says.
	Connect func(ctx context.Context, addr string) (net.Conn, error)
}

// Exporter sends spans to a collector by OTLP. Nothing waits for it but Close. Nil is one that nobody asked for.
type Exporter struct {
	provider *sdk.TracerProvider
	sender   *sender
	version  string
}

// closeWithin is how long Close waits for a collector.
const closeWithin = 400 * time.Millisecond

// Open returns an exporter if the environment names a collector, as OpenTelemetry specifies it (docs/tracing.md), else
// nil. What is wrong with the environment is told to Log, and no spans are made: they are never worth a run.
func Open(o Options) *Exporter {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if !wanted() {
		return nil
	}
	out, err := o.exporter()
	if err != nil {
		o.Log.Warn("no traces are made", "err", err)
		return nil
	}
	s := &sender{SpanExporter: out, log: o.Log, ended: make(chan struct{})}
	s.ctx, s.cut = context.WithCancel(context.Background())
	return &Exporter{sdk.NewTracerProvider(sdk.WithBatcher(s), sdk.WithResource(o.resource())), s, o.Version}
}

// wanted reports whether the environment asks for traces by OTLP.
func wanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if by := os.Getenv("OTEL_TRACES_EXPORTER"); by != "" && by != "otlp" {
		return false
	}
	return setting("ENDPOINT") != ""
}

// exporter speaks the protocol that the environment names, gRPC by default. Where to, and how, is in the environment
// too.
func (o *Options) exporter() (sdk.SpanExporter, error) {
	ctx := context.Background() // nothing is connected yet
	switch by := cmp.Or(setting("PROTOCOL"), "grpc"); by {
	case "grpc":
		return otlptrace.New(ctx, &overGRPC{options: o})
	case "http/protobuf":
		return otlptrace.New(ctx, &overHTTP{})
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: grpc and http/protobuf are spoken", by)
	}
}

// resource says what spans come from.
func (o *Options) resource() *resource.Resource {
	r, err := resource.New(context.Background(),
		resource.WithAttributes(attribute.String("service.name", o.Service), attribute.String("service.version", o.Version)),
		resource.WithHost(), resource.WithProcessPID(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		o.Log.Warn("traces lack something of where they come from", "err", err)
	}
	return r
}

// Tracer makes spans; nil where nobody asked for any.
func (e *Exporter) Tracer() trace.Tracer {
	if e == nil {
		return nil
	}
	return e.provider.Tracer("github.com/feedwater-io/feedwater", trace.WithInstrumentationVersion(e.version))
}

// Close sends what has ended and was not sent, for 0.4 s at most, and returns when nothing of the exporter runs any
// more.
func (e *Exporter) Close() {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	defer e.sender.cut()
	defer context.AfterFunc(ctx, e.sender.cut)()
	_ = e.provider.Shutdown(ctx) // the log was told
	<-e.sender.ended
}

// sender is an exporter whose sending can be cut short, and whose errors are told once for each time that the collector
// is gone: the log must not grow with spans.
type sender struct {
	sdk.SpanExporter
	log   *slog.Logger
	ctx   context.Context
	cut   context.CancelFunc
	ended chan struct{}

	failing bool // of the SDK's goroutine
}

// ExportSpans implements sdk.SpanExporter.
func (s *sender) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := s.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !s.failing:
		s.log.Warn("traces cannot be sent and are dropped", "err", Text(err.Error()))
	case err == nil && s.failing:
		s.log.Info("traces are sent again")
	}
	s.failing = err != nil
	return nil
}

// Shutdown implements sdk.SpanExporter. The SDK calls it last, once.
func (s *sender) Shutdown(ctx context.Context) error {
	defer close(s.ended)
	return s.SpanExporter.Shutdown(ctx)
}
