package admission

import (
	"errors"
	"io"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
)

// handshakeLog keeps the books on connections that ended before their first call: who connects is told too little to
// find out why.
type handshakeLog struct {
	handshakes, refusals prometheus.Counter
	failures, full       *SampledLog
}

func newHandshakeLog(handshakes, refusals prometheus.Counter, log *slog.Logger) *handshakeLog {
	return &handshakeLog{handshakes, refusals, NewSampledLog(log), NewSampledLog(log)}
}

// logFailure counts a handshake, and logs it unless there are many. Who says nothing at all, as a probe of the port
// does, is only counted.
func (s *handshakeLog) logFailure(host string, err error) {
	s.handshakes.Inc()
	if !errors.Is(err, io.EOF) {
		s.failures.Warn("a handshake failed", "host", host, "err", err)
	}
}

// logRefusal counts a connection for which there was no place, and logs it unless there are many.
func (s *handshakeLog) logRefusal(host string, err error) {
	s.refusals.Inc()
	s.full.Warn("a connection was refused", "host", host, "err", err)
}
