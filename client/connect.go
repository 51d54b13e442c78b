package client

import (
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/control/pick"
)

const (
	connectEvery = time.Second
	leaveAfter   = 30 * time.Second // a node that has become one too many is kept for so long
)

// connectMembers chooses the nodes that the fleet holds streams to: of a large fleet only some, by rendezvous hash of
// trainer and node, more when the loop needs more for some seconds, and others in place of those that are down.
func (r *roster) connectMembers(now time.Time) {
	if now.Sub(r.connected) < connectEvery {
		return
	}
	r.connected = now
	copy(r.needed[1:], r.needed[:])
	r.needed[0] = r.connectionsNeeded()
	chosen := r.chooseMembers(max(slices.Min(r.needed[:]), pick.ConnectionCount(0, 0)) + r.countUnfit()) // twice as many each time that none of them fits
	for _, m := range r.members {
		switch {
		case chosen[m]:
			m.holdStream()
		case !m.chosen:
		case m.surplus.IsZero():
			m.surplus = now
		case now.Sub(m.surplus) >= leaveAfter:
			m.releaseStream()
		}
	}
}

// holdStream holds a stream to a node from now on.
func (m *member) holdStream() {
	m.chosen, m.surplus = true, time.Time{}
	m.startLoop()
	if m.session != nil {
		m.session.leaving = false
	}
	m.gate.setOpen(true)
}

// releaseStream lets go of a node that there is no need for: it gets no more wants, and its stream is closed when it
// holds none.
func (m *member) releaseStream() {
	m.gate.setOpen(false)
	if m.session != nil {
		m.session.leaving = true
		if len(m.session.attempts) > 0 {
			return
		}
		m.session.quit()
	}
	m.chosen = false
}

// connectionsNeeded is to how many nodes to connect.
func (r *roster) connectionsNeeded() int {
	r.job.pacing.mu.Lock()
	pace := r.job.pacing.pace.Seconds()
	r.job.pacing.mu.Unlock()
	takes := make([]float64, 0, len(r.live))
	for _, m := range r.live {
		takes = append(takes, m.speed.UnloadedSeconds())
	}
	return pick.ConnectionCount(pick.KnownMedian(takes)*float64(r.wantSamples), pace)
}

// chooseMembers are the nodes to connect to. A local one is always among them.
func (r *roster) chooseMembers(n int) map[*member]bool {
	chosen := map[*member]bool{}
	for _, m := range pick.ChooseSubset(r.members, n, (*member).preferenceScore, (*member).isLacking) {
		chosen[m] = true
	}
	for _, m := range r.members {
		if m.node == r.job.options.Local {
			chosen[m] = true
		}
	}
	return chosen
}

// preferenceScore is a node's place in the order in which the fleet connects: this rank's, but all ranks' until it is
// known what a job that begins pins.
func (m *member) preferenceScore() uint64 {
	if j := m.roster.job; j.info.Load() == nil && !j.isResumed() {
		return m.common
	}
	return m.score
}

// isLacking reports whether another node is needed in this one's place, or beside it.
func (m *member) isLacking() bool { return m.isDown() || len(m.differs) > 0 }

// isDown reports whether another node is needed in this one's place.
func (m *member) isDown() bool {
	if m.session == nil {
		return m.tried && m.chosen // not one that was let go
	}
	return !m.isUsable()
}
