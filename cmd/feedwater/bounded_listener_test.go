package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// However many connections somebody holds to a port for probes, with a request on each, the process has few of them, and probes are answered.
func TestProbesAreAnsweredBesideManyConnections(t *testing.T) {
	for _, flag := range []string{"health", "http"} {
		t.Run(flag, func(t *testing.T) {
			addr := filepath.Join(t.TempDir(), "web")
			mux := http.NewServeMux()
			newReadiness().addProbes(mux)
			stop, err := serveWeb(t.Context(), webPort{flag: flag, addr: "unix:" + addr, handler: mux, once: flag == "health"}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			var held []*bufio.Reader
			for range 3 * maxWebConnections {
				c, err := net.Dial("unix", addr)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				held = append(held, bufio.NewReader(c))
				if _, err := fmt.Fprint(c, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				answer, err := http.ReadResponse(held[len(held)-1], nil) //nolint:bodyclose // it is read to its end
				if err != nil || answer.StatusCode != http.StatusOK || answer.Close != (flag == "health") {
					t.Fatalf("connection %d: %v, %v", len(held), answer, err)
				}
				if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "ok\n" {
					t.Fatalf("%q, %v", text, err)
				}
			}
			ended := 0
			for _, r := range held[:len(held)-maxWebConnections] {
				if _, err := r.Peek(1); err != nil { // waits for as long as the connection is open
					ended++
				}
			}
			if want := 2 * maxWebConnections; ended != want {
				t.Errorf("%d connections have ended, want %d", ended, want)
			}
		})
	}
}

// A connection that is closed makes room for another one.
func TestClosedConnectionMakesRoom(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := newBoundedListener(l, 2)
	accept := func() (ours net.Conn, theirs net.Conn) {
		theirs, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if ours, err = b.Accept(); err != nil {
			t.Fatal(err)
		}
		return ours, theirs
	}
	_, first := accept()
	defer first.Close()
	second, theirs := accept()
	defer theirs.Close()
	_ = second.Close()
	_ = second.Close()
	third, last := accept()
	defer last.Close()
	for what, c := range map[string]net.Conn{"first": first, "third": last} {
		if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the %s connection: %v", what, err)
		}
	}
	_ = third.Close()
}
