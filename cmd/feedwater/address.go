package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
)

const unixPrefix = "unix:"

// checkAddress says what is wrong with an address to listen on.
func checkAddress(addr string) error {
	path, ok := strings.CutPrefix(addr, unixPrefix)
	switch {
	case !ok:
		return checkHostPort(addr)
	case path == "":
		return errors.New("a unix socket needs a path, unix:/path")
	}
	return nil
}

func checkHostPort(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%w; write host:port, or :port for all networks", err)
	}
	return nil
}

// isLocalAddress reports whether only this machine can connect to addr.
func isLocalAddress(addr string) bool {
	if strings.HasPrefix(addr, unixPrefix) {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// openListener opens the port, or the socket of a path.
func openListener(ctx context.Context, addr string) (net.Listener, error) {
	l, err := listenAt(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", addr, err)
	}
	return l, nil
}

func listenAt(ctx context.Context, addr string) (net.Listener, error) {
	var c net.ListenConfig
	path, ok := strings.CutPrefix(addr, unixPrefix)
	if !ok {
		return c.Listen(ctx, "tcp", addr)
	}
	l, err := c.Listen(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && isLeftBehind(ctx, path) {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		return c.Listen(ctx, "unix", path)
	}
	return l, err
}

// isLeftBehind reports whether a path is the socket of a process that was killed.
func isLeftBehind(ctx context.Context, path string) bool {
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = c.Close()
	}
	info, statErr := os.Lstat(path)
	return errors.Is(err, syscall.ECONNREFUSED) && statErr == nil && info.Mode().Type() == os.ModeSocket
}

// addressOf is what trainers write to reach a listener.
func addressOf(l net.Listener) string {
	if a := l.Addr(); a.Network() == "unix" {
		return unixPrefix + a.String()
	}
	return l.Addr().String()
}
