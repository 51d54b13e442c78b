package main

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// full is a listener that cannot accept.
type full struct{ err error }

func (f full) Accept() (net.Conn, error) { return nil, &net.OpError{Op: "accept", Err: f.err} }
func (full) Close() error                { return nil }
func (full) Addr() net.Addr              { return &net.TCPAddr{Port: 7070} }

// Connections that cannot be accepted are told of, again and again but not each time; the end of the listener is nothing to tell.
func TestAcceptErrorsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newBook()
		logger := slog.New(slog.NewTextHandler(log, nil))
		_, _ = newLoggedListener(full{net.ErrClosed}, logger).Accept()
		l := newLoggedListener(full{syscall.EMFILE}, logger)
		for range 60 {
			if _, err := l.Accept(); err == nil {
				t.Error("accepted")
			}
			time.Sleep(time.Second)
		}
		if s := log.String(); strings.Count(s, "\n") != 6 || !strings.Contains(s, "too many open files") || !strings.Contains(s, ":7070") {
			t.Errorf("a minute without files:\n%s", s)
		}
	})
}

func TestHTTPErrorsAreLogged(t *testing.T) {
	log := newBook()
	h := newHTTP(http.NotFoundHandler(), slog.New(slog.NewTextHandler(log, nil)))
	h.ErrorLog.Print("http: Accept error: too many open files")
	if s := log.String(); !strings.Contains(s, "level=WARN") || !strings.Contains(s, "too many open files") {
		t.Errorf("the log says %q", s)
	}
}
