package span

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// overHTTP is OTLP over HTTP, an otlptrace.Client.
type overHTTP struct {
	client http.Client
	url    string
	header map[string]string
}

// Start implements otlptrace.Client. It does not connect yet.
func (h *overHTTP) Start(context.Context) error {
	config, err := tlsConfig()
	if err != nil {
		return err
	}
	h.client = http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config}, Timeout: timeout()}
	h.url = cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), strings.TrimSuffix(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "/")+"/v1/traces")
	h.header, err = headers()
	return err
}

// UploadTraces implements otlptrace.Client.
func (h *overHTTP) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	body, err := proto.Marshal(&collect.ExportTraceServiceRequest{ResourceSpans: spans})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for key, value := range h.header {
		r.Header.Set(key, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := h.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", h.url, answer.Status)
	}
	return nil
}

// Stop implements otlptrace.Client.
func (h *overHTTP) Stop(context.Context) error {
	h.client.CloseIdleConnections()
	return nil
}
