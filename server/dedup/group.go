// Package dedup has equal batches made once, for whatever streams want them: calls of wants that are equal are one
// call, as singleflight has it, and a cache keeps what was made. It knows neither streams nor pipelines: a Want submits
// itself.
//
// It starts no goroutine.
package dedup

import (
	"slices"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/control/share"
)

// Group has equal batches made once. Who asks first has it made, in his memory; who asks meanwhile gets a copy, and so
// does who asks later, for as long as it is kept. It is made for whichever of them needs it first, on his account, so
// nobody waits for somebody who says that he needs it later. Failures are shared with nobody: who waited for one is
// made his own batch. A nil Group shares nothing.
type Group struct {
	mu    sync.Mutex
	calls map[Key]*call
	cache batchCache
}

// Priority is whom a batch is made for, and when that one needs it.
type Priority struct {
	Account *share.Account
	Step    uint64
	Due     time.Time
}

// Want asks for one batch. Its methods may be called from any goroutine, and must not block.
type Want interface {
	Priority() Priority
	// Submit has the batch made for this want. publish, if not nil, is called with it, or with nil if it failed, before
	// the want ends.
	Submit(publish func(*Batch))
	// MoveUp has what Submit began made for somebody who needs it earlier.
	MoveUp(Priority)
	// Cancel gives up what Submit began.
	Cancel()
	// Reserve is memory for so many bytes, or less than that if there is none.
	Reserve(bytes int) []byte
	// FinishShared ends the want with a batch that another one had made; room is what Reserve gave.
	FinishShared(b *Batch, room []byte)
	// FinishCancelled ends a want that Submit never began.
	FinishCancelled()
}

// Waiter is a want's place in a Group. It is used once, and not copied after that.
type Waiter struct {
	Want Want

	// Guarded by Group.mu: the call that it waits for, else whether it is about to be served or submitted, and
	// cancelled meanwhile.
	call                  *call
	submitting, cancelled bool
}

// call is a batch in the making.
type call struct {
	key     Key
	maker   *Waiter
	urgent  *Waiter // of the maker and those who wait, the one whose want is due first
	waiting []*Waiter
}

// New returns a group that keeps bytes of batches that were made; nil where that is 0.
func New(bytes int64) *Group {
	if bytes <= 0 {
		return nil
	}
	return &Group{calls: map[Key]*call{}, cache: newBatchCache(bytes)}
}

// Submit has a batch made, or shares one that is equal.
func (g *Group) Submit(key Key, w *Waiter) {
	g.mu.Lock()
	if b := g.cache.findBatch(key); b != nil {
		g.mu.Unlock()
		g.serveCopy(w, b)
		return
	}
	if c := g.calls[key]; c != nil {
		c.addWaiter(w)
		g.mu.Unlock()
		return
	}
	g.beginCall(key, w, nil)
}

// addWaiter has w wait for the batch. mu is held.
func (c *call) addWaiter(w *Waiter) {
	w.call = c
	c.waiting = append(c.waiting, w)
	if w.Want.Priority().Due.Before(c.urgent.Want.Priority().Due) {
		c.urgent = w
		c.moveUp()
	}
}

// moveUp has the batch made as soon as it is needed, if it is late by then, once the pipeline has it. mu is held.
func (c *call) moveUp() {
	if !c.maker.submitting {
		c.maker.Want.MoveUp(c.urgent.Want.Priority())
	}
}

// beginCall has w make the batch for itself and others. It is called with mu held, and gives it back.
func (g *Group) beginCall(key Key, w *Waiter, others []*Waiter) {
	w.submitting = true
	c := &call{key: key, maker: w, urgent: w}
	for _, o := range others {
		c.addWaiter(o)
	}
	g.calls[key] = c
	g.mu.Unlock()
	g.submitWant(w, c)
}

// submitWant submits a want, of a call if it makes one. What befalls it meanwhile does so when the pipeline has it.
func (g *Group) submitWant(w *Waiter, c *call) {
	if c == nil {
		w.Want.Submit(nil)
	} else {
		w.Want.Submit(func(b *Batch) { g.publishBatch(c, b) })
	}
	g.mu.Lock()
	w.submitting = false
	if c != nil {
		c.moveUp()
	}
	cancelled := w.cancelled
	g.mu.Unlock()
	if cancelled {
		w.Want.Cancel()
	}
}

// publishBatch gives a batch to all who wait for it, while it is still there. If there is none, the first of them has
// it made. Whoever asks finds it in the making or in the cache.
func (g *Group) publishBatch(c *call, b *Batch) {
	kept := g.cache.copyBatch(b)
	g.mu.Lock()
	if kept != nil {
		g.cache.addBatch(c.key, kept)
	}
	if g.calls[c.key] == c {
		delete(g.calls, c.key)
	}
	waiting := c.waiting
	c.waiting = nil
	for _, w := range waiting {
		w.call, w.submitting = nil, true
	}
	if b == nil && len(waiting) > 0 {
		g.beginCall(c.key, waiting[0], waiting[1:])
		return
	}
	g.mu.Unlock()
	for _, w := range waiting {
		g.serveCopy(w, b)
	}
}

// serveCopy copies a batch that another want had made, or has it made again where the copy would find no room.
func (g *Group) serveCopy(w *Waiter, b *Batch) {
	room := w.Want.Reserve(len(b.Data))
	if len(room) < len(b.Data) {
		g.submitWant(w, nil)
		return
	}
	w.Want.FinishShared(b, room)
}

// Cancel takes a want out of the call that it waits for; false where the pipeline has it, or nobody submitted it here.
func (g *Group) Cancel(w *Waiter) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	c := w.call
	if c == nil {
		defer g.mu.Unlock()
		w.cancelled = w.submitting
		return w.submitting
	}
	c.waiting = slices.DeleteFunc(c.waiting, func(o *Waiter) bool { return o == w })
	w.call = nil
	g.mu.Unlock()
	w.Want.FinishCancelled()
	return true
}
