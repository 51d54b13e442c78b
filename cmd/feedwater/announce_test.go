package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/client/membership"
)

// A node is in its folder from when it listens until it is told to stop, by an address that trainers reach it by.
func TestServeAnnounces(t *testing.T) {
	dir := t.TempDir()
	n := start(t, "--data", "a="+anyFolder(t), "--announce", dir)
	l, err := membership.NewList([]string{"file:" + dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx) })
	if nodes, err := l.Nodes(ctx); err != nil || len(nodes) != 1 || nodes[0] != n.addr {
		t.Errorf("%q, %v; the node is %s", nodes, err, n.addr)
	}
	stop()
	running.Wait()
	n.stop()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 || n.err != nil {
		t.Errorf("left behind: %v, %v, %v", entries, err, n.err)
	}
}

// A folder that cannot be written is said at the start, and the port is free again.
func TestServeCannotAnnounce(t *testing.T) {
	dir := anyFolder(t)
	listen := "unix:" + filepath.Join(dir, "s")
	code, _, errs := call("serve", "--cache-dir", dir, "--data", "a="+dir, "--listen", listen, "--announce", filepath.Join(dir, "none"))
	if code == 0 || !strings.Contains(errs, "--announce "+filepath.Join(dir, "none")) || !strings.Contains(errs, "no such file or directory") {
		t.Errorf("%d %s", code, errs)
	}
	if l, err := listenAt(t.Context(), listen); err != nil {
		t.Error(err)
	} else {
		_ = l.Close()
	}
}

func TestAnnouncedAddress(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	for listen, want := range map[string]string{":0": host + ":PORT", "0.0.0.0:0": host + ":PORT", "127.0.0.1:0": "127.0.0.1:PORT", unixPrefix + socket: unixPrefix + socket} {
		l, err := listenAt(t.Context(), listen)
		if err != nil {
			t.Fatal(err)
		}
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			want = strings.ReplaceAll(want, "PORT", strconv.Itoa(a.Port))
		}
		if got, err := announcedAddress(l); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", listen, got, err, want)
		}
		_ = l.Close()
	}
}

// failing renews as it is told to.
type failing struct {
	mu      sync.Mutex
	err     error
	renewed int
}

func (f *failing) Renew() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed++
	return f.err
}

func (f *failing) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// An announcement is renewed each 30 s, and trouble with it is told once, however long it lasts.
func TestRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, log := &failing{}, newBook()
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { renew(ctx, f, (&logOptions{format: "text", level: "info"}).newLog(log)) })
		pause := func() { time.Sleep(10 * time.Minute); synctest.Wait() }
		pause()
		if f.renewed != 20 || log.String() != "" {
			t.Errorf("renewed %d times in ten minutes; %s", f.renewed, log)
		}
		f.fail(errors.New("stale file handle"))
		pause()
		f.fail(nil)
		pause()
		stop()
		running.Wait()
		if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "stale file handle") || !strings.Contains(text, "renewed again") {
			t.Error(text)
		}
	})
}
