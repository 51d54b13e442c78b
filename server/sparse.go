package server

import (
	stdlog "log"
	"log/slog"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

// sparse is a line of the log that is written for some of many like events: twenty at once, then one a second. It tells how many were not
// written of.
type sparse struct {
	log  *slog.Logger
	some *rate.Limiter

	mu     sync.Mutex
	unsaid int
}

func newSparse(log *slog.Logger) *sparse { return &sparse{log: log, some: rate.NewLimiter(1, 20)} }

// warn logs an event, unless there were many.
func (s *sparse) warn(message string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.some.Allow() {
		s.unsaid++
		return
	}
	s.log.Warn(message, append(args, "unsaid", s.unsaid)...)
	s.unsaid = 0
}

// SparseLog is a log for a package that writes lines of its own, as net/http does of each connection that goes wrong: it warns of twenty at once,
// then of one a second, and tells how many it left out. Lines that end with EOF are left out.
func SparseLog(log *slog.Logger) *stdlog.Logger {
	return stdlog.New(sparseWriter{newSparse(log)}, "", 0)
}

// sparseWriter takes a line at a time.
type sparseWriter struct{ to *sparse }

func (w sparseWriter) Write(line []byte) (int, error) {
	if text := strings.TrimSuffix(string(line), "\n"); !strings.HasSuffix(text, "EOF") { // who says nothing, as a probe of the port does
		w.to.warn(text)
	}
	return len(line), nil
}
