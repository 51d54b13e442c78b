package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// loader serves one Loader's socket.
type loader struct {
	agent  *Agent
	conn   *net.UnixConn
	outbox *outbox
	calls  sync.WaitGroup
	// conversions of batches that came; begun by the fleet's goroutine.
	conversions sync.WaitGroup
	policies    policies
	spans       spans
	due         time.Time // of the latest want; of read alone
	mismatch    error     // why calls are refused, nil: they are not; of read alone

	mu      sync.Mutex
	fleet   *client.Fleet // nil until an open call
	table   *os.File      // that the fleet gives to nodes; nil: none
	info    *pb.OpenResponse
	stores  int // how many of the job's the trainer knows
	slots   *slots
	wants   map[uint64]*client.Want
	session *pulse.Session // nil until the plan is open
}

func newLoader(a *Agent, c *net.UnixConn) *loader {
	return &loader{agent: a, mismatch: a.options.newGreeting().mismatchWith(nil), conn: c, outbox: newOutbox(c), wants: map[uint64]*client.Want{}, policies: policies{}}
}

// discardSlots gives the slots' memory back at once.
func (l *loader) discardSlots() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots != nil {
		l.slots.discardMemory()
	}
}

// sendWant sends a want to the fleet. Its answer goes to the trainer from there.
func (l *loader) sendWant(w want) {
	l.mu.Lock()
	fleet, info, s := l.fleet, l.info, l.slots
	l.mu.Unlock()
	if fleet == nil || info == nil || s == nil {
		l.outbox.queuePacket(failedPacket(w.id, &failure{Kind: "bug", Message: "a want before open and slots"}))
		return
	}
	b, err := newDelivery(w, s)
	if err != nil {
		l.outbox.queuePacket(failedPacket(w.id, describeError(err)))
		return
	}
	b.name.Policy = l.policies[w.policy]
	l.due = fleet.DueAfter(l.due, int(min(w.ahead, maxAhead)))
	request := &client.Want{
		Name: b.name, Spare: b.lendSpare,
		Request: batch.Request{Dst: b.wire, Grow: b.grow, Image: b.image, Step: w.step, Due: l.due},
	}
	request.Done = func(r client.Result) {
		l.mu.Lock()
		delete(l.wants, w.id)
		l.mu.Unlock()
		l.finishWant(b, r)
	}
	l.mu.Lock()
	_, twice := l.wants[w.id]
	if !twice {
		l.wants[w.id] = request
	}
	l.mu.Unlock()
	if twice {
		s.endUse()
		l.outbox.queuePacket(failedPacket(w.id, &failure{Kind: "bug", Message: fmt.Sprintf("want %d is out already", w.id)}))
		return
	}
	request.Span = fleet.Span(b.name, l.spans.rank, l.spans.parent)
	l.spans.addSpan(w.id, request.Span)
	fleet.Want(request)
}

// maxAhead bounds how far ahead of the loop a want is said to be.
const maxAhead = 1 << 20

func (l *loader) cancelWant(id uint64) {
	l.mu.Lock()
	w, fleet := l.wants[id], l.fleet
	l.mu.Unlock()
	if w != nil {
		fleet.Cancel(w)
	}
}

// finishWant answers a want. Where images have to be converted or moved that is left to a goroutine: the fleet's must
// not block.
func (l *loader) finishWant(b *delivery, r client.Result) {
	if r.Err == nil && b.hasPixelWork(r) {
		l.conversions.Go(func() { l.deliverBatch(b, r) })
		return
	}
	l.deliverBatch(b, r)
}

func (l *loader) deliverBatch(b *delivery, r client.Result) {
	packet := l.resultPacket(b, r)
	b.slots.spares.returnBuffer(b.spare)
	b.slots.endUse()
	l.agent.options.Warnings.sendTo(l)
	l.outbox.queuePacket(packet)
}

// resultPacket puts the batch into its final places and says so.
func (l *loader) resultPacket(b *delivery, r client.Result) []byte {
	if errors.Is(r.Err, node.ErrCancelled) || errors.Is(r.Err, client.ErrClosed) {
		return cancelledPacket(b.want.id)
	}
	l.mu.Lock()
	fleet, told := l.fleet, l.stores
	l.mu.Unlock()
	b.stores = fleet.MoreStores(told)
	extra, err := b.placeBatch(r)
	if err == nil && len(extra) > maxExtra {
		err = tooMuchToTell(b.want.count, r)
	}
	if err != nil {
		return failedPacket(b.want.id, describeError(err))
	}
	if b.stores != nil {
		l.mu.Lock()
		l.stores = max(l.stores, len(b.stores))
		l.mu.Unlock()
	}
	return donePacket(b.want, fleet.Window(int(b.want.count)), r.Header.GetIndex(), extra)
}

// sendNotice tells the trainer's log.
func (l *loader) sendNotice(level, message string) {
	l.outbox.queuePacket(noticePacket(level, message))
}

// outbox is the packets on their way to the trainer. It never blocks its callers: there are no more answers than wants
// and calls.
type outbox struct {
	conn *net.UnixConn

	mu      sync.Mutex
	change  sync.Cond
	packets [][]byte
	closed  bool
}

func newOutbox(c *net.UnixConn) *outbox {
	o := &outbox{conn: c}
	o.change.L = &o.mu
	return o
}

func (o *outbox) queuePacket(packet []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.packets = append(o.packets, packet)
	o.change.Signal()
}

// close lets run end when all is sent or the socket is gone.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.change.Signal()
}

// writePackets writes packets until close.
func (o *outbox) writePackets() {
	for {
		o.mu.Lock()
		for len(o.packets) == 0 && !o.closed {
			o.change.Wait()
		}
		packets := o.packets
		o.packets = nil
		o.mu.Unlock()
		if len(packets) == 0 {
			return
		}
		for _, p := range packets {
			if _, err := o.conn.Write(p); err != nil {
				break // the trainer is gone; the reader sees it too
			}
		}
	}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return describeError(err).toJSON()
	}
	return b
}

// handlePulse notes how the loop fares, and tells the nodes.
func (l *loader) handlePulse(p *pb.Pulse) {
	p.Host = l.agent.host
	l.mu.Lock()
	line, fleet := l.session, l.fleet
	l.mu.Unlock()
	line.Report(p, time.Now())
	if fleet != nil {
		fleet.Pulse(p)
	}
}

// handleGreeting answers the greeting of the other side, whose calls are refused from then on if it is of another
// release.
func (l *loader) handleGreeting(b []byte) error {
	theirs, err := parseGreeting(b)
	if err != nil {
		return err
	}
	own := l.agent.options.newGreeting()
	l.mismatch = own.mismatchWith(&theirs)
	l.outbox.queuePacket(own.toPacket())
	return nil
}
