package server

import (
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// strangers keeps the books on connections that ended in their handshake: who connects is told too little by TLS to find out why.
type strangers struct {
	count prometheus.Counter
	log   *slog.Logger
	some  *rate.Limiter // of lines in the log

	mu     sync.Mutex
	unsaid int
}

func newStrangers(count prometheus.Counter, log *slog.Logger) *strangers {
	return &strangers{count: count, log: log, some: rate.NewLimiter(1, 20)}
}

// failed counts a handshake, and logs it unless there are many. Who says nothing at all, as a probe of the port does, is only counted.
func (s *strangers) failed(host string, err error) {
	s.count.Inc()
	if errors.Is(err, io.EOF) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.some.Allow() {
		s.unsaid++
		return
	}
	s.log.Warn("a handshake failed", "host", host, "err", err, "unsaid", s.unsaid)
	s.unsaid = 0
}
