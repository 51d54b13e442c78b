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
	roster    *roster
	node      node.Node
	stop      context.CancelFunc // ends keep; nil: it was not begun, for the fleet never needed the node
	hint      bool               // a source told of it, which may err
	hadStream bool               // it had a stream once

	session   *session // nil while there is no stream
	err       error    // the last one
	tried     bool     // there was an answer, or there was none
	leftOut   bool
	proposal  *proposal  // its answer, while that waits
	relist    relisting  // when it was asked to list its data anew
	listing   string     // what it told of its list when it took part last; empty: nothing that says whether its data is what it was
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
	backlog   pick.Backlog    // as refreshLoads took it, and what assignWants has planned since
	batches   uint64
	failures  uint64
	damaged   uint64
	samples   uint64 // delivered
	bytes     uint64
	decoded   uint64 // pictures of these samples, as the node tells, and those that had no copy and could have had one
	uncopied  uint64
	kept      uint64 // pictures of these samples whose pixels the node had kept, as it tells
}

// session is one stream to a node, and what is going on there.
type session struct {
	member     *member
	stream     node.Stream
	quit       context.CancelFunc
	workers    int
	listing    string            // of its data, as the node told
	codecs     map[string]uint32 // their revisions, and the build that has them, as the node told
	build      string
	attempts   []*attempt
	samples    int       // of wants
	firstAsked time.Time // of the first want after it held none and had spoken since
	lastCancel time.Time // when an attempt was given up last, which is answered too
	lastAnswer time.Time
	lastHeard  uint64  // the latest attempt that it had heard of when it last told
	queued     float64 // core-seconds of all jobs, as it last told
	draining   bool
	leaving    bool // the fleet needs it no more
	silence    silence
	trouble    string // what it waits for, as it last told; empty: nothing. It tells no more once it holds no want
}

// reopenStream ends the stream to a node whose data is not what it was, so that it is asked for it anew. What it
// answers is told behind changed.
func (m *member) reopenStream(changed string) {
	m.changed = changed
	if m.session != nil {
		m.session.quit()
	}
}

// isUsable reports whether a node takes wants at all. A busy one does, later.
func (m *member) isUsable() bool {
	return m.session != nil && !m.session.draining && !m.session.leaving && !m.session.silence.on
}

func (m *member) stateAt(now time.Time) NodeState {
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
	case m.trust.IsDoubted():
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

// waitedPerSample is for how long nothing has come, in seconds per sample of the want that the node has had for
// longest.
func (s *session) waitedPerSample(now time.Time) float64 {
	if len(s.attempts) == 0 {
		return 0
	}
	return s.attempts[0].waitTime(now).Seconds() / float64(max(s.attempts[0].want.count, 1))
}

// hasHeardOf reports whether the node had heard of an attempt when it spoke last.
func (s *session) hasHeardOf(a *attempt) bool { return a.request.ID <= s.lastHeard }

// unheardSamples is the samples of wants that the node had not heard of when it spoke last.
func (s *session) unheardSamples() int {
	n := 0
	for _, a := range s.attempts {
		if !s.hasHeardOf(a) {
			n += a.want.count
		}
	}
	return n
}

// hasRoom reports whether a node may get one more want of count samples.
func (m *member) hasRoom(count int) bool { return m.roomFor(count) > 0 }

// roomFor is how many more wants of count samples a node may get.
func (m *member) roomFor(count int) int {
	return pick.InFlight(m.session.workers, count) - len(m.session.attempts)
}

// isUnfitFor reports whether a want goes to other nodes first, for a node has refused what came to it of late: the more
// in a row, the fewer are tried there.
func (m *member) isUnfitFor(w *Want) bool { return w.seq%(1<<min(m.unfit, maxUnfit)) != 0 }

// maxUnfit bounds how seldom a node is tried: with every 16th want.
const maxUnfit = 4

// currentError is the last error of a node, or what it is at.
func (m *member) currentError(state NodeState) error {
	if state != Scanning {
		return m.lastError()
	}
	var all []string
	for _, s := range m.scans {
		all = append(all, fmt.Sprintf("%s: %d files in %s, %.0f a second",
			s.Folder, s.Files, s.Running.AsDuration().Round(time.Second), plausibleAmount(s.FilesPerSecond)))
	}
	return errors.New(strings.Join(all, ", "))
}

// currentTrouble is what a node waits for, as it says; empty where it waits for nothing, since it holds no want.
func (m *member) currentTrouble() string {
	if m.session == nil || len(m.session.attempts) == 0 {
		return ""
	}
	if own, ok := m.node.(node.Troubled); ok {
		return own.Trouble()
	}
	return m.session.trouble
}

// lastError is the last error of a node, and what it waits for.
func (m *member) lastError() error {
	trouble := m.currentTrouble()
	switch {
	case trouble == "" || m.err != nil && strings.Contains(m.err.Error(), trouble):
		return m.err
	case m.err == nil:
		return errors.New("it waits for storage: " + trouble)
	}
	return fmt.Errorf("it waits for storage: %s; before that: %w", trouble, m.err)
}

// plausibleAmount is a number that a node tells, of seconds as a rule; 0 if it is none.
func plausibleAmount(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return 0
	}
	return min(x, 1e12)
}

// isAnswering reports whether a node has a stream that speaks.
func (m *member) isAnswering() bool { return m.session != nil && !m.session.silence.on }

// takeProbe reports whether it is time for a probe; then the next one is later.
func (m *member) takeProbe(clock float64, now time.Time) bool {
	q := &m.session.silence
	if !q.on {
		return m.isUsable() && !now.Before(m.busyUntil) && m.trust.TakeProbe(clock)
	}
	if now.Before(q.probe) {
		return false
	}
	q.delay = min(2*q.delay, probeMax)
	q.probe = now.Add(q.delay)
	return true
}

// hasItsData reports whether an answer says that a node which said that its data changed has what it had again.
func (m *member) hasItsData(r *pb.OpenResponse) bool {
	return m.listing != "" && r.GetListing() == m.listing
}

// relisting is when a node lists its data anew, since it does not agree with others.
type relisting struct {
	asked bool          // its next answer tells what it lists
	last  time.Time     // when it answered last
	wait  time.Duration // from then to the next time, at least; 0: it was not asked
}

// isDue reports whether a node is to be asked. Most is how long it waits at most.
func (q *relisting) isDue(most time.Duration, now time.Time) bool {
	return !q.asked && (q.wait == 0 || !now.Before(q.last.Add(min(q.wait, most))))
}

// Between two times that a node is asked to list its data anew lies relistFirst, twice as much, and so on up to
// relistMost; up to relistAlone while no node has a stream. Folders may be large, and take long.
const (
	relistFirst = 5 * time.Second
	relistAlone = 15 * time.Second
	relistMost  = 10 * time.Minute
)

// proposal is an answer that waits for those of the other nodes.
type proposal struct {
	info     *pb.OpenResponse
	decision chan<- joinDecision
}

// The times from one probe of a silent node to the next: the first, and the longest.
const (
	probeMin = time.Second
	probeMax = 30 * time.Second
)
