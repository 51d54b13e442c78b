package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
)

// checkProfile refuses addresses that other machines reach: profiles show command lines and memory, and cost as much as one asks for.
func checkProfile(addr string) error {
	if addr == "" {
		return nil
	}
	err := checkAddress(addr)
	if err == nil && !isLocalAddress(addr) {
		err = errors.New("profiles are for this machine alone: use unix:/path or 127.0.0.1:PORT")
	}
	if err != nil {
		return fmt.Errorf("--pprof %s: %w", addr, err)
	}
	return nil
}

// serveProfile serves Go's profiles at /debug/pprof/, if there is an address; stop ends it.
func serveProfile(ctx context.Context, addr string, log *slog.Logger) (stop func(), err error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return serveWeb(ctx, webPort{flag: "pprof", addr: addr, handler: mux}, log)
}
