package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
)

// A command that does not come back is ended, when what is said last hangs as well.
func TestEndingByForce(t *testing.T) {
	codes := make(chan int, 1)
	e := &exitGuard{exit: func(code int) { codes <- code }, grace: time.Millisecond}
	said, never := make(chan struct{}), make(chan struct{})
	defer close(never)
	e.beforeForce(func() { close(said) })
	e.beforeForce(func() { <-never })
	e.startTimer()
	e.startTimer()
	if code := <-codes; code != exitError {
		t.Errorf("exit code %d", code)
	}
	<-said
}

// Where the kernel keeps a process that has ended, it keeps its ports too, unless they were closed before.
func TestEndingByForceClosesProbes(t *testing.T) {
	e := &exitGuard{exit: func(int) {}}
	dir := t.TempDir()
	o := &serveOptions{health: "unix:" + filepath.Join(dir, "health"), pprof: "unix:" + filepath.Join(dir, "pprof")}
	stop, err := o.serveProbes(context.WithValue(t.Context(), exitGuardKey{}, e), newReadiness(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if sockets, _ := os.ReadDir(dir); len(sockets) != 2 {
		t.Fatalf("%v", sockets)
	}
	e.forceExit()
	if sockets, _ := os.ReadDir(dir); len(sockets) != 0 {
		t.Errorf("open: %v", sockets)
	}
}

// One that comes back is not.
func TestEndingInOrder(t *testing.T) {
	e := &exitGuard{exit: func(int) { t.Error("ended by force") }}
	e.beforeForce(func() { t.Error("what is said last is said") })
	e.stopTimer()
	e.startTimer()
	e.forceExit()
}

// What hangs is named, with its root and folder.
func TestHangingIsNamed(t *testing.T) {
	roots := bulkhead.New(bulkhead.Options{})
	defer roots.Close()
	if err := withHanging(nil, roots.States()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun, again, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	roots.Add("photos", "/data")
	go func() {
		defer close(done)
		_, _ = bulkhead.Do(ctx, roots.Of("/data/train"), "list", func(func()) (int, error) { close(begun); <-again; return 0, nil }, nil)
	}()
	<-begun
	var hangs *errHangs
	for _, err := range []error{nil, context.Canceled} {
		if got := withHanging(err, roots.States()); !errors.As(got, &hangs) || !strings.Contains(got.Error(), "1 on photos (/data)") {
			t.Error(got)
		}
	}
	if other := errors.New("other"); !errors.Is(withHanging(other, roots.States()), other) {
		t.Error("another error is not told")
	}
	cancel()
	close(again)
	<-done
}

// A root that does not answer is no reason to leave a node alone.
func TestRootsHealth(t *testing.T) {
	node := health.NewServer()
	node.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	announce := announceRoots(node, []string{"x", "y"})
	want := func(service string, status healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if r, err := node.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service}); err != nil || r.Status != status {
			t.Errorf("%q: %v, %v", service, r, err)
		}
	}
	announce("x", false)
	want("feedwater.v1.Feed/x", healthpb.HealthCheckResponse_NOT_SERVING)
	want("feedwater.v1.Feed/y", healthpb.HealthCheckResponse_SERVING)
	want("", healthpb.HealthCheckResponse_SERVING)
	announce("x", true)
	want("feedwater.v1.Feed/x", healthpb.HealthCheckResponse_SERVING)
}

// What the command waits for beside its data is told of after a while, and named when it is ended by force.
func TestEndingByForceNamesWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told strings.Builder
		var said []string
		say := func(what string) { said = append(said, what) }
		e := &exitGuard{exit: func(int) {}, told: &told}
		e.waitFor("--tls-cert cert.pem", say)()
		e.waitFor("--announce nodes", say)
		time.Sleep(time.Minute)
		synctest.Wait()
		if strings.Join(said, ",") != "--announce nodes" {
			t.Errorf("said: %q", said)
		}
		e.forceExit()
		if want := "feedwater: ended while the storage of --announce nodes does not answer\n"; told.String() != want {
			t.Errorf("%q, want %q", told.String(), want)
		}
	})
}
