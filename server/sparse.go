package server

import (
	"log/slog"
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
