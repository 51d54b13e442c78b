package agent

import (
	"encoding/binary"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/span"
)

// spans are those of a Loader's batches that the loop has not taken. They belong to the goroutine that reads its
// socket.
type spans struct {
	rank   int
	parent trace.SpanContext
	open   map[uint64]*client.Span // by want
	order  []uint64                // wants, the latest mostSpans
}

// mostSpans is more than a Loader has slots: of what is older the loop has nothing.
const mostSpans = 128

// setParent takes what a span packet tells, without its kind: whose batches those wanted from now on are, and what
// their spans are below.
func (s *spans) setParent(b []byte) error {
	if len(b) < 4 {
		return fmt.Errorf("a span packet of %d bytes", len(b))
	}
	s.rank, s.parent = int(binary.LittleEndian.Uint32(b)), span.Parse(string(b[4:]))
	return nil
}

// addSpan takes the span of a want; nil is none.
func (s *spans) addSpan(id uint64, of *client.Span) {
	if of == nil {
		return
	}
	if s.open == nil {
		s.open = map[uint64]*client.Span{}
	}
	s.open[id] = of
	if s.order = append(s.order, id); len(s.order) > mostSpans {
		s.dropSpan(s.order[0])
		s.order = s.order[1:]
	}
}

// handleReturned takes a returned packet, without its kind: the loop has a batch.
func (s *spans) handleReturned(b []byte) error {
	if len(b) != 16 {
		return fmt.Errorf("a returned packet of %d bytes", len(b))
	}
	id, wait := binary.LittleEndian.Uint64(b), readFloat(b[8:])
	if !(wait > 0) { // also not a number
		wait = 0
	}
	s.open[id].Taken(time.Duration(min(wait, 1e6) * float64(time.Second)))
	delete(s.open, id)
	return nil
}

func (s *spans) dropSpan(id uint64) {
	s.open[id].Drop()
	delete(s.open, id)
}

// close ends what is left. All wants have been answered.
func (s *spans) close() {
	for id := range s.open {
		s.dropSpan(id)
	}
}
