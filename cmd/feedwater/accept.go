package main

import (
	"errors"
	"log/slog"
	"net"

	"golang.org/x/time/rate"
)

// loggedListener is a listener that logs why it cannot accept, as when the process has all the files that it may have open. gRPC tries again
// without a word.
type loggedListener struct {
	net.Listener
	log  *slog.Logger
	some *rate.Limiter
}

func newLoggedListener(l net.Listener, log *slog.Logger) *loggedListener {
	return &loggedListener{l, log, rate.NewLimiter(0.1, 1)}
}

// Accept implements net.Listener.
func (a *loggedListener) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err != nil && !errors.Is(err, net.ErrClosed) && a.some.Allow() {
		a.log.Error("connections cannot be accepted", "addr", addressOf(a.Listener), "err", err)
	}
	return c, err
}
