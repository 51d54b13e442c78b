package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/watch/history"
	"github.com/feedwater-io/feedwater/watch/page"
)

// webPort is a port that speaks HTTP.
type webPort struct {
	flag, addr string                          // addr may be empty: there is no port
	tls        *tls.Config                     // nil: plaintext
	gate       func(net.Listener) net.Listener // bounds connections; nil: maxWebConnections at once
	once       bool                            // a connection ends after one answer
	handler    http.Handler
}

// serveWeb serves a port; stop ends it.
func serveWeb(ctx context.Context, p webPort, log *slog.Logger) (stop func(), err error) {
	if p.addr == "" {
		return func() {}, nil
	}
	l, err := listenAt(ctx, p.addr)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", p.flag, p.addr, err)
	}
	log.Info(p.flag, "addr", addressOf(l), "tls", p.tls != nil)
	if p.gate != nil {
		l = p.gate(l)
	} else {
		l = newBoundedListener(l, maxWebConnections)
	}
	if p.tls != nil {
		l = tls.NewListener(l, admission.HTTPConfig(p.tls))
	}
	h := newHTTP(p.handler, log)
	h.SetKeepAlivesEnabled(!p.once)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error(p.flag, "error", err)
		}
	}()
	return func() {
		_ = h.Close()
		<-done
	}, nil
}

// newHTTP bounds what a client may take, and logs what goes wrong, but not all of very much: whoever reaches a port could fill the disk.
func newHTTP(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: 16 << 10, ErrorLog: admission.StandardLog(log),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
}

// metricsHandler answers with what collectors of our own tell, and the usual metrics of the process and of Go's runtime.
func metricsHandler(own ...prometheus.Collector) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	process := collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})
	for _, c := range append(own, collectors.NewGoCollector(), process) {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

// nodePage is what a node answers at --http: the page and /metrics for those who may watch it, the probes for everybody. /healthz is /readyz
// by its older name.
func nodePage(s *server.Server, live *page.Live, past *history.History, ready *readiness) (http.Handler, error) {
	metrics, err := metricsHandler(s)
	if err != nil {
		return nil, err
	}
	shown := page.Handler(page.Options{Overview: live.Overview, History: past, Batch: func(r *http.Request, job, plan string) page.Batch {
		set, missing := s.Thumbnails(r.Context(), job, plan)
		if missing != "" {
			return page.Batch{Missing: missing}
		}
		return page.Batch{Taken: set.Taken, Epoch: set.Epoch, Rank: set.Rank, Pictures: set.Pictures}
	}})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.Watchers(metrics))
	mux.Handle("GET /", s.Watchers(shown))
	ready.addProbes(mux)
	mux.HandleFunc("GET /healthz", ready.handleReady)
	return mux, nil
}
