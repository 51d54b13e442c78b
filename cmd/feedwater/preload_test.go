package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/pipeline"
)

func TestSources(t *testing.T) {
	s := sources{}
	if err := s.Set("photos/val, photos"); err != nil || s.String() != "photos,photos/val" || s["photos/val"].Path != "val" {
		t.Errorf("%v, %v", s, err)
	}
	if err := s.checkRoots(folders{"photos": "/data"}); err != nil {
		t.Error(err)
	}
	if err := s.checkRoots(folders{"pictures": "/data"}); err == nil || !strings.Contains(err.Error(), "pictures") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"", "/photos", "photos/../etc", "photos,"} {
		if err := (sources{}).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestPreload: the process is ready when every data set has been listed, however often that failed before.
func TestPreload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := newReadiness()
		tries := 0
		load := func(_ context.Context, source pipeline.Source) error {
			if source.Path == "val" {
				return nil
			}
			time.Sleep(time.Minute)
			if tries++; tries < 3 {
				return errors.New("the storage is away")
			}
			return nil
		}
		wait := sources{"a": {Root: "a"}, "a/val": {Root: "a", Path: "val"}}.preloadAll(t.Context(), ready, load, slog.New(slog.DiscardHandler))
		time.Sleep(2 * time.Minute)
		answer := httptest.NewRecorder()
		ready.handleReady(answer, httptest.NewRequest("GET", "/readyz", nil))
		if answer.Code != 503 || strings.TrimSpace(answer.Body.String()) != "waiting for the files of a" {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
		wait()
		if why := ready.pendingReason(); why != "" || tries != 3 {
			t.Errorf("%q after %d tries", why, tries)
		}
	})
}

// TestPreloadEnds: a node that is told to stop while it lists files does not wait for that.
func TestPreloadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ready := newReadiness()
		load := func(ctx context.Context, _ pipeline.Source) error {
			<-ctx.Done()
			return ctx.Err()
		}
		wait := sources{"a": {Root: "a"}}.preloadAll(ctx, ready, load, slog.New(slog.DiscardHandler))
		cancel()
		wait()
		if ready.pendingReason() == "" {
			t.Error("ready, although nothing was listed")
		}
	})
}

// TestServePreloads: a data set of --preload has been listed before anybody opens it.
func TestServePreloads(t *testing.T) {
	n := start(t, "--data", "photos="+pictures(t, 3), "--preload", "photos", "--cache-dir", t.TempDir())
	if took := n.log.await(`preloaded.*data=photos took=(\S+)`); took == "" {
		t.Errorf("log: %s", n.log)
	}
}
