package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/watch/page"
)

// serveHTTP serves the page, /metrics and /healthz if addr is set; stop ends it.
func serveHTTP(ctx context.Context, addr string, s *server.Server, node *health.Server, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{s, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /", page.Handler(page.NewLive(s.Source()).Picture))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { healthz(w, r, node) })
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--http %s: %w", addr, err)
	}
	h := newHTTP(mux, log)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("http", "error", err)
		}
	}()
	log.Info("http", "addr", l.Addr().String())
	return func() {
		_ = h.Close()
		<-done
	}, nil
}

// newHTTP bounds what a client may take, and logs what goes wrong.
func newHTTP(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
}

// healthz is 200 while the node takes wants, 503 while it drains.
func healthz(w http.ResponseWriter, r *http.Request, node *health.Server) {
	answer, err := node.Check(r.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || answer.Status != healthpb.HealthCheckResponse_SERVING {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}
