package admission

import (
	stdlog "log"
	"log/slog"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

// SampledLog is a line of the log that is written for some of many like events: twenty at once, then one a second. It
// tells how many were not written of.
type SampledLog struct {
	log  *slog.Logger
	rate *rate.Limiter

	mu     sync.Mutex
	unsaid int
}

// NewSampledLog returns a line of this log.
func NewSampledLog(log *slog.Logger) *SampledLog {
	return &SampledLog{log: log, rate: rate.NewLimiter(1, 20)}
}

// Warn logs an event, unless there were many.
func (s *SampledLog) Warn(message string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.rate.Allow() {
		s.unsaid++
		return
	}
	s.log.Warn(message, append(args, "unsaid", s.unsaid)...)
	s.unsaid = 0
}

// StandardLog is a log for a package that writes lines of its own, as net/http does of each connection that goes wrong:
// it warns of twenty at once, then of one a second, and tells how many it left out. Lines that end with EOF are left
// out.
func StandardLog(log *slog.Logger) *stdlog.Logger {
	return stdlog.New(sampledWriter{NewSampledLog(log)}, "", 0)
}

// sampledWriter takes a line at a time.
type sampledWriter struct{ to *SampledLog }

func (w sampledWriter) Write(line []byte) (int, error) {
	if text := strings.TrimSuffix(string(line), "\n"); !strings.HasSuffix(text, "EOF") { // who says nothing, as a probe of the port does
		w.to.Warn(text)
	}
	return len(line), nil
}
