package server

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/batchmem"
	"github.com/feedwater-io/feedwater/timeout"
)

// want is one want of a stream, from its arrival to the end of its answer. Fields are guarded by wantSet.mu, but for
// those that the pipeline has until made.
type want struct {
	id        uint64
	epoch     uint32
	arrived   time.Time
	slots     []*batchmem.Slot // the last one holds the batch
	charged   atomic.Int64
	begun     atomic.Bool
	deadline  *timeout.Timer // nil: none
	inner     Want
	made      Made
	cancelled bool
}

// heldBytes is the bytes that a want has which the pipeline has.
func (w *want) heldBytes() int64 { return int64(len(w.slots[0].Bytes)) + w.charged.Load() }

// keepSlots gives all slots back but the last n.
func (w *want) keepSlots(n int) {
	for len(w.slots) > n {
		w.slots[0].Release(true)
		w.slots = w.slots[1:]
	}
}

// wantSet is the wants that a stream holds, and the answers that it owes.
type wantSet struct {
	account *admission.Account
	held    *atomic.Int64  // how many wants the node's streams hold
	wake    chan struct{}  // told when answers or complete change
	making  sync.WaitGroup // wants that the pipeline has

	mu       sync.Mutex
	wants    map[uint64]*want
	answers  []*want // in the order in which they are sent
	complete bool    // no more wants come
	ended    bool    // no more answers are sent
}

func newWantSet(a *admission.Account, held *atomic.Int64) *wantSet {
	return &wantSet{account: a, held: held, wake: make(chan struct{}, 1), wants: map[uint64]*want{}}
}

func (s *wantSet) hasWant(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wants[id] != nil
}

// addWant enters a want, of most at most, and lends it the slot that take gives. Then the pipeline has the want until
// returnWant.
func (s *wantSet) addWant(w *want, most int, take func() *batchmem.Slot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errDraining
	}
	if len(s.wants) >= most {
		return &admission.BusyError{
			Message: fmt.Sprintf("the stream holds %d wants already", len(s.wants)), RetryAfter: admission.RetryBusy,
		}
	}
	if err := s.account.AddWant(); err != nil {
		return err
	}
	slot := take()
	if slot == nil {
		s.account.RemoveWant()
		return &admission.BusyError{Message: "the memory for batches, or one's share of it, is used up", RetryAfter: admission.RetryBusy}
	}
	w.slots = []*batchmem.Slot{slot}
	w.inner.Dst = slot.Bytes
	s.wants[w.id] = w
	s.held.Add(1)
	s.making.Add(1)
	return nil
}

// setDeadline has cancel called when a want is still there after d. 0: never. A time for which this node was suspended
// does not count: its trainer, which may have been suspended with it, gives up by itself.
func (s *wantSet) setDeadline(w *want, d time.Duration, cancel func(id uint64)) {
	if d <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wants[w.id] == w {
		w.deadline = timeout.AfterFunc(d, func() { cancel(w.id) })
	}
}

// maxAnswers bounds what a trainer that asks and does not listen can make a node remember.
const maxAnswers = 1 << 14

// queueRefusal queues the answer to a want that was not entered.
func (s *wantSet) queueRefusal(w *want) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) >= maxAnswers {
		return &admission.BusyError{
			Message: fmt.Sprintf("%d answers wait for the trainer", len(s.answers)), RetryAfter: admission.RetryBusy,
		}
	}
	s.queueAnswer(w)
	return nil
}

// returnWant takes a want back from the pipeline, and queues its answer if there is still somebody to send it to.
func (s *wantSet) returnWant(w *want, m Made) {
	defer s.making.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.made = m
	if m.Failure != nil {
		w.keepSlots(0)
	}
	w.keepSlots(1)
	if s.ended {
		s.dropWant(w)
		return
	}
	s.queueAnswer(w)
}

// queueAnswer queues a want's answer. mu is held.
func (s *wantSet) queueAnswer(w *want) {
	s.answers = append(s.answers, w)
	s.wakeSender()
}

func (s *wantSet) wakeSender() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// takeAnswer takes the first answer; nil if there is none.
func (s *wantSet) takeAnswer() *want {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) == 0 || s.ended {
		return nil
	}
	w := s.answers[0]
	s.answers = s.answers[1:]
	return w
}

// endWant forgets a want whose answer is sent, before the last message of it goes: a trainer that has the whole answer
// may ask for the next.
func (s *wantSet) endWant(w *want) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropWant(w)
}

// dropWant forgets a want that nobody waits for. mu is held, and the pipeline has given the want back.
func (s *wantSet) dropWant(w *want) {
	w.keepSlots(0)
	w.slots = nil
	if s.wants[w.id] == w { // a refused one never was
		delete(s.wants, w.id)
		if w.deadline != nil {
			w.deadline.Stop()
		}
		s.account.RemoveWant()
		s.held.Add(-1)
	}
}

// cancelWant marks a want as given up and returns it; nil: there is none.
func (s *wantSet) cancelWant(id uint64) *want {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.wants[id]
	if w != nil {
		w.cancelled = true
	}
	return w
}

func (s *wantSet) isCancelled(w *want) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.cancelled
}

// setComplete says that no more wants come.
func (s *wantSet) setComplete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete = true
	s.wakeSender()
}

// isIdle reports whether the stream is at its end: no wants are there, and none come, which is so on a node that drains
// too.
func (s *wantSet) isIdle(draining bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (s.complete || draining) && len(s.wants) == 0 && len(s.answers) == 0
}

// describeWants sets how many wants there are, and which of them were begun.
func (s *wantSet) describeWants(n *pb.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.Wants = uint32(len(s.wants))
	for id, w := range s.wants {
		if w.begun.Load() {
			n.Begun = append(n.Begun, id)
		}
	}
}

// dropAnswers drops the answers that were not sent and keeps further ones from being queued.
func (s *wantSet) dropAnswers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, w := range s.answers {
		s.dropWant(w)
	}
	s.answers = nil
}

func (s *wantSet) listWants() []*want {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*want, 0, len(s.wants))
	for _, w := range s.wants {
		all = append(all, w)
	}
	return all
}
