package span

import (
	"context"
	"strings"
	"time"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// overGRPC is OTLP over gRPC, an otlptrace.Client. OpenTelemetry's own clients, of both protocols, have all gRPC
// servers and clients of the process take compressed messages, which a node must not: a small one may become a large
// one.
type overGRPC struct {
	options *Options
	conn    *grpc.ClientConn
	header  metadata.MD
	timeout time.Duration
}

// Start implements otlptrace.Client. It does not connect yet.
func (g *overGRPC) Start(context.Context) error {
	target, plain := strings.CutPrefix(setting("ENDPOINT"), "http://")
	if !plain {
		target = strings.TrimPrefix(target, "https://")
		plain = !strings.HasPrefix(setting("ENDPOINT"), "https://") && strings.EqualFold(setting("INSECURE"), "true")
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if !plain {
		config, err := tlsConfig()
		if err != nil {
			return err
		}
		options[0] = grpc.WithTransportCredentials(credentials.NewTLS(config))
	}
	if g.options.Connect != nil {
		options = append(options, grpc.WithContextDialer(g.options.Connect))
	}
	header, err := headers()
	if err != nil {
		return err
	}
	g.header = metadata.New(header)
	g.timeout = timeout()
	g.conn, err = grpc.NewClient(strings.TrimSuffix(target, "/"), options...)
	return err
}

// UploadTraces implements otlptrace.Client. It waits for a collector that is not there, as long as one that does not
// answer.
func (g *overGRPC) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, g.header), g.timeout)
	defer cancel()
	_, err := collect.NewTraceServiceClient(g.conn).Export(ctx, &collect.ExportTraceServiceRequest{ResourceSpans: spans}, grpc.WaitForReady(true))
	return err
}

// Stop implements otlptrace.Client.
func (g *overGRPC) Stop(context.Context) error { return g.conn.Close() }
