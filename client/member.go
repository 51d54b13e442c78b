package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// member is a node of a fleet. Its fields belong to the fleet's goroutine; keep runs in one of its own.
type member struct {
	roster *roster
	node   node.Node
	stop   context.CancelFunc // ends keep; nil: it was not begun, for the fleet never needed the node
	hint   bool               // a source told of it, which may err
	came   bool               // it had a stream once

	session   *session // nil while there is no stream
	err       error    // the last one
	tried     bool     // there was an answer, or there was none
	leftOut   bool
	proposal  *proposal  // its answer, while that waits
	scans     []*pb.Scan // what it lists, as it said while it was being opened
	changed   string     // why it was opened again: what it said of its data while it was in, and what was done
	gate      gate       // open while the fleet wants a stream to it
	chosen    bool       // it does
	surplus   time.Time  // since when it would not, if it had none
	score     uint64     // place in the trainer's order of preference; breaks ties
	common    uint64     // the same in the order that all ranks share
	speed     pick.Node
	trust     pick.Trust
	busyUntil time.Time
	warned    time.Time       // of its storage
	unfit     int             // wants in a row that it refused for its build
	differs   map[string]bool // units for which it did
	hand      pick.Hand       // as of the latest look, and what assign has planned since
	batches   uint64
	failures  uint64
	damaged   uint64
	samples   uint64 // delivered
	bytes     uint64
}

// session is one stream to a node, and what is going on there.
type session struct {
	member   *member
	stream   node.Stream
	quit     context.CancelFunc
	workers  int
	codecs   map[string]uint32 // their revisions, and the build that has them, as the node told
	build    string
	wants    []*asked
	samples  int       // of wants
	asked    time.Time // of the first want after it held none and had spoken since
	dropped  time.Time // when an attempt was given up last, which is answered too
	answered time.Time
	heard    uint64  // the latest attempt that it had heard of when it last told
	queued   float64 // core-seconds of all jobs, as it last told
	draining bool
	leaving  bool // the fleet needs it no more
	silence  silence
}

// reopen ends the stream to a node whose data is not what it was, so that it is asked for it anew. What it answers is told behind changed.
func (m *member) reopen(changed string) {
	m.changed = changed
	if m.session != nil {
		m.session.quit()
	}
}

// usable reports whether a node takes wants at all. A busy one does, later.
func (m *member) usable() bool {
	return m.session != nil && !m.session.draining && !m.session.leaving && !m.session.silence.on
}

func (m *member) state(now time.Time) NodeState {
	switch s := m.session; {
	case s == nil && !m.chosen:
		return Unused
	case s == nil && len(m.scans) > 0:
		return Scanning
	case s == nil && m.leftOut:
		return LeftOut
	case s == nil && m.tried:
		return Down
	case s == nil:
		return Connecting
	case s.draining:
		return Draining
	case s.silence.on:
		return Silent
	case now.Before(m.busyUntil):
		return Busy
	case m.trust.Doubted():
		return Doubted
	}
	return Ready
}

// silence is what a fleet knows of a node that holds wants and says nothing.
type silence struct {
	on    bool
	since time.Time
	delay time.Duration // from one probe to the next
	probe time.Time     // of the next
}

// waited is for how long nothing has come, in seconds per sample of the want that the node has had for longest.
func (s *session) waited(now time.Time) float64 {
	if len(s.wants) == 0 {
		return 0
	}
	return s.wants[0].waited(now).Seconds() / float64(max(s.wants[0].want.count, 1))
}

// heardOf reports whether the node had heard of an attempt when it spoke last.
func (s *session) heardOf(a *asked) bool { return a.attempt.ID <= s.heard }

// unheard is the samples of wants that the node had not heard of when it spoke last.
func (s *session) unheard() int {
	n := 0
	for _, a := range s.wants {
		if !s.heardOf(a) {
			n += a.want.count
		}
	}
	return n
}

// takes reports whether a node may get one more want of count samples.
func (m *member) takes(count int) bool { return m.room(count) > 0 }

// room is how many more wants of count samples a node may get.
func (m *member) room(count int) int {
	return pick.InFlight(m.session.workers, count) - len(m.session.wants)
}

// shuns reports whether a want goes to other nodes first, for a node has refused what came to it of late: the more in a row, the fewer are tried there.
func (m *member) shuns(w *Want) bool { return w.seq%(1<<min(m.unfit, maxUnfit)) != 0 }

// maxUnfit bounds how seldom a node is tried: with every 16th want.
const maxUnfit = 4

// trouble is the last error of a node, or what it is at.
func (m *member) trouble(state NodeState) error {
	if state != Scanning {
		return m.err
	}
	var all []string
	for _, s := range m.scans {
		all = append(all, fmt.Sprintf("%s: %d files in %s, %.0f a second",
			s.Folder, s.Files, s.Running.AsDuration().Round(time.Second), amount(s.FilesPerSecond)))
	}
	return errors.New(strings.Join(all, ", "))
}

// amount is a number that a node tells, of seconds as a rule; 0 if it is none.
func amount(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return 0
	}
	return min(x, 1e12)
}

// answers reports whether a node has a stream that speaks.
func (m *member) answers() bool { return m.session != nil && !m.session.silence.on }

// mayBeProbed reports whether it is time for a probe; then the next one is later.
func (m *member) mayBeProbed(clock float64, now time.Time) bool {
	q := &m.session.silence
	if !q.on {
		return m.usable() && !now.Before(m.busyUntil) && m.trust.Probe(clock)
	}
	if now.Before(q.probe) {
		return false
	}
	q.delay = min(2*q.delay, probeMax)
	q.probe = now.Add(q.delay)
	return true
}
