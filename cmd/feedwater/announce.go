package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/feedwater-io/feedwater/client/membership"
)

// announce says where the node is, in the folder of --announce, until ctx ends or end is called. The file is there when announce returns; end waits until
// it has been taken away, which a file server that hangs may hold up. No folder: nothing.
func (o *serveOptions) announce(ctx context.Context, l net.Listener, log *slog.Logger) (end func(), err error) {
	if o.announced == "" {
		return func() {}, nil
	}
	addr, err := announcedAddress(l)
	if err != nil {
		return nil, fmt.Errorf("--announce: %w", err)
	}
	waitForFolder := func() (answered func()) {
		return exitGuardOf(ctx).waitFor("--announce "+o.announced, logWait(log))
	}
	answered := waitForFolder()
	a, err := membership.Announce(o.announced, addr)
	answered()
	if err != nil {
		return nil, fmt.Errorf("--announce %s: %w", o.announced, err)
	}
	log.Info("announced", "file", a.Path(), "node", addr)
	renewing, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		renew(renewing, a, log)
		if err := a.Remove(); err != nil {
			log.Warn("the announcement stays: trainers take it for stale ten minutes after those of other nodes", "err", err)
		}
	}()
	return func() {
		defer waitForFolder()()
		cancel()
		<-done
	}, nil
}

// renewer is what is used of an announcement.
type renewer interface{ Renew() error }

// renew renews until ctx ends. What goes wrong is logged once, until it goes well again.
func renew(ctx context.Context, a renewer, log *slog.Logger) {
	ticks := time.NewTicker(membership.RenewEvery)
	defer ticks.Stop()
	failing := false
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		err := a.Renew()
		if err != nil && !failing {
			log.Warn("the node's announcement is not renewed; it is tried again", "err", err)
		}
		if err == nil && failing {
			log.Info("the node's announcement is renewed again")
		}
		failing = err != nil
	}
}

// announcedAddress is what trainers reach a listener by: its own address, or this machine's name where it listens on all.
func announcedAddress(l net.Listener) (string, error) {
	switch a := l.Addr().(type) {
	case *net.TCPAddr:
		if !a.IP.IsUnspecified() {
			return a.String(), nil
		}
		host, err := os.Hostname()
		return net.JoinHostPort(host, fmt.Sprint(a.Port)), err
	default:
		path, err := filepath.Abs(a.String())
		return unixPrefix + path, err
	}
}
