package server

import (
	"errors"
	"io"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
)

// strangers keeps the books on connections that ended before their first call: who connects is told too little to find out why.
type strangers struct {
	handshakes, refusals prometheus.Counter
	failures, full       *sparse
}

func newStrangers(handshakes, refusals prometheus.Counter, log *slog.Logger) *strangers {
	return &strangers{handshakes, refusals, newSparse(log), newSparse(log)}
}

// failed counts a handshake, and logs it unless there are many. Who says nothing at all, as a probe of the port does, is only counted.
func (s *strangers) failed(host string, err error) {
	s.handshakes.Inc()
	if !errors.Is(err, io.EOF) {
		s.failures.warn("a handshake failed", "host", host, "err", err)
	}
}

// refused counts a connection for which there was no place, and logs it unless there are many.
func (s *strangers) refused(host string, err error) {
	s.refusals.Inc()
	s.full.warn("a connection was refused", "host", host, "err", err)
}
