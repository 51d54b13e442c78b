package server_test

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// lines is a log that several goroutines write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A client that TLS turns away learns little; whoever runs the node finds it in the log.
func TestFailedHandshakes(t *testing.T) {
	ca := servertest.NewAuthority(t, "ca")
	pair := ca.Issue("node", time.Hour)
	log := &lines{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	config, err := admission.TLSFiles{Cert: pair.Cert, Key: pair.Key, ClientCA: ca.File}.Config(logger)
	if err != nil {
		t.Fatal(err)
	}
	g := (&guarded{t: t, engine: &servertest.Engine{}, ca: ca}).serve(server.Options{TLS: config, Log: logger, Access: admission.Access{Certificates: true}})
	n := &node{Server: g.Server, t: t}
	const many = 3
	for i := range many {
		c, err := net.Dial("tcp", g.addr)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 { // the first one says nothing
			_ = tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}).Handshake()
		}
		c.Close()
	}
	until(t, "not all are counted", func() bool { return n.counted("failed_handshakes_total") == many })
	text := log.String()
	if k := strings.Count(text, "a handshake failed"); k != many-1 || strings.Contains(text, "err=EOF") {
		t.Errorf("%d lines of %d:\n%s", k, many, text)
	}
	if !strings.Contains(text, "host=127.0.0.1") || !strings.Contains(text, "client didn't provide a certificate") {
		t.Errorf("the log does not say why:\n%s", text)
	}
}
