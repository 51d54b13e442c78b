package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// readiness is whether a process should get work. It depends on what the process waits for at its start, on whether it drains and on whether its
// certificate is good, and on nothing else: all nodes of a fleet lose a shared file server at once, and should not all be taken out of service by that.
type readiness struct {
	node     *health.Server // told of each change
	services []string       // by these names

	mu       sync.Mutex
	waits    map[string]int // for what, and how many times
	draining bool
	check    func() error // of what may change later
	failed   string       // why it failed last; empty: it did not
	log      *slog.Logger
}

// newReadiness is that of a process that waits for its start; see wait.
func newReadiness(services ...string) *readiness {
	r := &readiness{node: health.NewServer(), services: append([]string{""}, services...), waits: map[string]int{}}
	r.updateHealth()
	return r
}

// waitFor keeps the process from being ready until done is called, which may be called again. What names it, for people.
func (r *readiness) waitFor(what string) (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits[what]++
	r.updateHealth()
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.waits[what]--; r.waits[what] == 0 {
			delete(r.waits, what)
		}
		r.updateHealth()
	})
}

// setDraining says that the process goes. It is never ready again.
func (r *readiness) setDraining() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
	r.updateHealth()
}

// addCheck has the process not be ready while check returns an error. It is called whenever a probe comes, and log is told of what changes.
func (r *readiness) addCheck(check func() error, log *slog.Logger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.check, r.log = check, log
}

// runCheck looks at what may have changed.
func (r *readiness) runCheck() {
	r.mu.Lock()
	check := r.check
	r.mu.Unlock()
	if check == nil {
		return
	}
	why := ""
	if err := check(); err != nil { // it may wait for storage
		why = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if why == r.failed {
		return
	}
	r.failed = why
	r.updateHealth()
	if why != "" {
		r.log.Error("not ready; streams that are open go on", "err", why)
	} else {
		r.log.Info("ready again")
	}
}

// pendingReason is what stands against being ready; empty: nothing.
func (r *readiness) pendingReason() string {
	r.runCheck()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.draining:
		return "draining"
	case len(r.waits) > 0:
		return "waiting for " + strings.Join(slices.Sorted(maps.Keys(r.waits)), ", ")
	}
	return r.failed
}

// updateHealth has gRPC's health service say the same. mu is held, but by newReadiness.
func (r *readiness) updateHealth() {
	status := healthpb.HealthCheckResponse_SERVING
	if r.draining || len(r.waits) > 0 || r.failed != "" {
		status = healthpb.HealthCheckResponse_NOT_SERVING
	}
	for _, service := range r.services {
		r.node.SetServingStatus(service, status)
	}
}

// addProbes has mux answer /livez, 200 as long as the process answers at all, and /readyz, 200 while it should get work and else 503 with the
// reason. Probes are for everybody.
func (r *readiness) addProbes(mux *http.ServeMux) {
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", r.handleReady)
}

func (r *readiness) handleReady(w http.ResponseWriter, _ *http.Request) {
	if why := r.pendingReason(); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// serveHealth serves the probes alone, unencrypted, for kubelets and balancers; stop ends it. No address: nothing.
func (r *readiness) serveHealth(ctx context.Context, addr string, log *slog.Logger) (stop func(), err error) {
	mux := http.NewServeMux()
	r.addProbes(mux)
	return serveWeb(ctx, webPort{flag: "health", addr: addr, once: true, handler: mux}, log)
}
