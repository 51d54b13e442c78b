// Package spantest has a collector of spans for tests, which takes OTLP over gRPC as the usual ones do.
package spantest

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

// Endpoint is where the environment has to say that a Collector is: exporters reach it by Connect.
const Endpoint = "http://127.0.0.1:4317"

// Span is one that arrived.
type Span struct {
	Name, Trace, ID, Parent string
	// Service is what it came from.
	Service string
	// Said are its attributes, in words.
	Said   map[string]string
	Events []string
	Failed string
	// Nanos is how long it lasted.
	Nanos uint64
}

// Collector keeps the spans that it is sent. It starts a gRPC server; Close waits for it.
type Collector struct {
	collect.UnimplementedTraceServiceServer
	listener *bufconn.Listener
	server   *grpc.Server
	served   sync.WaitGroup

	mu    sync.Mutex
	spans []Span
}

// New starts a collector.
func New() *Collector {
	c := &Collector{listener: bufconn.Listen(64 << 10), server: grpc.NewServer()}
	collect.RegisterTraceServiceServer(c.server, c)
	c.served.Go(func() { _ = c.server.Serve(c.listener) })
	return c
}

// Close ends it.
func (c *Collector) Close() {
	c.server.Stop()
	c.served.Wait()
}

// Connect is for span.Options.
func (c *Collector) Connect(ctx context.Context, _ string) (net.Conn, error) {
	return c.listener.DialContext(ctx)
}

// Export implements the service.
func (c *Collector) Export(_ context.Context, r *collect.ExportTraceServiceRequest) (*collect.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.ResourceSpans {
		service := words(of.Resource.GetAttributes())["service.name"]
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, read(s, service))
			}
		}
	}
	return &collect.ExportTraceServiceResponse{}, nil
}

func read(s *otlp.Span, service string) Span {
	one := Span{
		Name: s.Name, Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
		Service: service, Said: words(s.Attributes), Failed: s.GetStatus().GetMessage(), Nanos: s.EndTimeUnixNano - s.StartTimeUnixNano,
	}
	for _, e := range s.Events {
		one.Events = append(one.Events, fmt.Sprint(e.Name, words(e.Attributes)))
	}
	return one
}

// words are attributes without the prefix that all of ours have.
func words(all []*common.KeyValue) map[string]string {
	said := map[string]string{}
	for _, a := range all {
		v := a.Value
		text := v.GetStringValue()
		switch v.Value.(type) {
		case *common.AnyValue_IntValue:
			text = fmt.Sprint(v.GetIntValue())
		case *common.AnyValue_DoubleValue:
			text = fmt.Sprint(v.GetDoubleValue())
		case *common.AnyValue_BoolValue:
			text = fmt.Sprint(v.GetBoolValue())
		}
		said[strings.TrimPrefix(a.Key, "feedwater.")] = text
	}
	return said
}

// Spans are all that arrived.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Named are those of a name that are children of parent; "" stands for any.
func (c *Collector) Named(name, parent string) []Span {
	return slices.DeleteFunc(c.Spans(), func(s Span) bool { return s.Name != name || parent != "" && s.Parent != parent })
}
