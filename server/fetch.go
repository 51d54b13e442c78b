package server

import (
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/batchmem"
	"github.com/feedwater-io/feedwater/server/runs"
	"github.com/feedwater-io/feedwater/timeout"
)

// Fetch implements the service Feed.
func (s *Server) Fetch(rpc grpc.BidiStreamingServer[pb.FetchRequest, pb.FetchResponse]) error {
	caller, err := s.guard.RequireCaller(rpc.Context())
	if err != nil {
		return toStatus(err)
	}
	account := caller.Account()
	if err := account.AddStream(); err != nil {
		return toStatus(err)
	}
	defer account.RemoveStream()
	if !s.streams.OpenStream() {
		return toStatus(errDraining)
	}
	conn := admission.ConnOf(rpc.Context())
	t := &stream{
		conn:   conn,
		server: s, rpc: rpc, account: account, quota: batchmem.NewQuota(s.memory, s.options.StreamBytes).JoinBudget(caller.Budget()),
		wants: newWantSet(account, &s.load.Wants), began: time.Now(), replaced: make(chan struct{}),
	}
	received, sent := make(chan error, 1), make(chan error, 1)
	t.goroutines.Go(func() { received <- t.receiveRequests() })
	t.goroutines.Go(func() { sent <- t.sendAnswers() })
	err = t.watchBoth(received, sent)
	t.wants.dropAnswers()
	if rpc.Context().Err() != nil { // both end at once; until then this call is one of those that its connection may have
		t.goroutines.Wait()
	}
	go func() { // Close waits for it
		defer s.streams.ReturnMemory()
		t.releaseAll()
	}()
	s.streams.CloseStream()
	return toStatus(err)
}

// watchBoth returns when the stream is to end, and why.
func (t *stream) watchBoth(received, sent <-chan error) error {
	limit := t.server.options.StallTimeout
	tick := time.NewTicker(limit / stallTicks)
	defer tick.Stop()
	listen := time.NewTicker(listenEvery)
	defer listen.Stop()
	var b blockedSend
	for {
		select {
		case err := <-received:
			if err != nil {
				return err
			}
			received = nil
			t.wants.setComplete()
		case err := <-sent:
			return err
		case <-listen.C:
			t.hearing.listen(t.conn.CountReads())
		case <-t.replaced:
			return &SilentError{After: silentTicks * listenEvery}
		case <-tick.C:
			if b.isStalled(t.sending.Load()) {
				t.server.metrics.CountStalled()
				t.server.options.Log.Warn("stream ended: the trainer takes no data", "limit", limit)
				return &StalledError{After: limit}
			}
		}
	}
}

// stallTicks is how often it is looked for a send that lasts too long, in the time that one may last.
const stallTicks = 4

// blockedSend is a send that goes on, as seen from tick to tick. It is not measured by a clock: after this process was
// stopped for a while, by a signal or a freezer, sends have lasted for long and no trainer is to blame.
type blockedSend struct {
	since int64 // when it began; 0: none goes on
	ticks int   // that it was seen at, after the first
}

// isStalled takes when the send began that goes on at a tick, and reports whether the same one went on for stallTicks.
func (b *blockedSend) isStalled(since int64) bool {
	if since == 0 || since != b.since {
		b.since, b.ticks = since, 0
		return false
	}
	b.ticks++
	return b.ticks >= stallTicks
}

// receiveRequests handles requests until the trainer ends its side.
func (t *stream) receiveRequests() error {
	for {
		request, err := t.rpc.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := t.account.ThrottleRequest(t.rpc.Context()); err != nil {
			return err
		}
		t.conn.ChargeFailures(t.rpc.Context(), t.failures.Swap(0))
		if err := t.handleRequest(request); err != nil {
			return err
		}
	}
}

// handleRequest does one request. It never waits for the pipeline, for memory or for the trainer. An error ends the
// stream.
func (t *stream) handleRequest(request *pb.FetchRequest) error {
	switch r := request.Request.(type) {
	case *pb.FetchRequest_Start:
		return t.startJob(r.Start)
	case *pb.FetchRequest_Want:
		return t.acceptWant(r.Want)
	case *pb.FetchRequest_Cancel:
		t.withdrawWant(r.Cancel)
	case *pb.FetchRequest_Pulse:
		t.line.Report(r.Pulse, time.Now())
	}
	return nil // requests of later versions are left alone
}

// Bytes of pieces on the wire, whole HTTP/2 frames: 16 KiB each.
const (
	pieceBytes    = 1 << 20
	minPieceBytes = 256 << 10
	maxPieceBytes = 2 << 20
	frameBytes    = 16 << 10
)

func (t *stream) startJob(start *pb.Start) error {
	if t.job != nil {
		return &ProtocolError{"a second start on one stream"}
	}
	if err := checkJob(start.GetJob()); err != nil {
		return err
	}
	j, err := t.server.jobs.beginJob(t.rpc.Context(), start, t.trainer())
	if err != nil {
		return err
	}
	t.job, t.pieceBytes = j, pieceBytes
	t.record = t.server.audit.BeginStream(admission.CallerOf(t.rpc.Context()), start.GetJob(), j.maker.Plan(), j.roots[0])
	t.line = t.server.book.OpenSession(start.GetJob(), j.maker.Plan().Hash(), time.Now())
	t.server.thumbnails.Open(t.shownAs(), j.roots)
	if n := start.GetPieceBytes(); n > 0 {
		t.pieceBytes = int(min(max(n, minPieceBytes), maxPieceBytes)) &^ (frameBytes - 1)
	}
	return nil
}

// releaseAll gives up all wants of a stream whose handler has returned, and waits until the pipeline and gRPC have
// given back what was lent to it.
func (t *stream) releaseAll() {
	t.goroutines.Wait()
	t.line.End(time.Now())
	if t.job != nil {
		t.server.thumbnails.Close(t.shownAs(), t.job.roots)
	}
	for _, w := range t.wants.listWants() {
		t.job.Cancel(&w.inner)
	}
	t.wants.making.Wait()
	if t.job != nil {
		t.job.Close()
		t.record.CloseStream()
	}
	t.rpc = nil // it leads to what gRPC has queued, which would be kept from the garbage collector
	t.reclaimSlots()
	if t.server.streams.CountOpen() == 0 {
		t.server.memory.TrimFree()
	}
}

// reclaimSlots gets slots back that gRPC has forgotten: those of a connection that died with data queued are found by
// the garbage collector, which in a calm process runs every two minutes only. A connection that stays open, and whose
// trainer takes nothing, keeps what is queued: it is closed.
func (t *stream) reclaimSlots() {
	ended, sends := time.Now(), uint64(0)
	for _, wait := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second, stillConnection, time.Second} {
		if wait == stillConnection {
			sends = t.conn.CountSends()
		}
		if t.waitReturned(wait, t.server.closing) {
			return
		}
		t.server.garbage.CollectSince(ended)
		ended = time.Now()
	}
	t.server.options.Log.Warn("a trainer's connection holds memory of a stream that ended", "bytes", t.quota.CountLent())
	for {
		if t.conn.HangUp(sends) {
			t.server.options.Log.Warn("connection closed: none of its streams takes data, and it holds memory of streams that ended", "host", t.conn.Host())
		}
		if t.conn.IsClosed() {
			t.server.garbage.CollectSince(ended)
			ended = time.Now()
		}
		sends = t.conn.CountSends()
		if t.waitReturned(lookAgain, t.server.streams.Draining()) {
			return
		}
	}
}

const (
	// stillConnection, and a second more, is how long no stream of a connection has sent anything that may be closed
	// for the memory it holds. Streams that hold wants send notices every noticeEvery.
	stillConnection = 4 * time.Second
	// lookAgain is how often a node looks for memory that gRPC holds long after a stream's end.
	lookAgain = 10 * time.Second
)

// waitReturned waits until the stream holds nothing, no longer than d in which this node runs, and not when the server
// is over.
func (t *stream) waitReturned(d time.Duration, over <-chan struct{}) bool {
	late := make(chan struct{})
	timer := timeout.AfterFunc(d, func() { close(late) })
	defer timer.Stop()
	for t.quota.CountLent() > 0 {
		select {
		case <-t.quota.Changed:
		case <-late:
			return t.quota.CountLent() == 0
		case <-over:
			return true
		}
	}
	return true
}

// trainer is what the run of a stream's job knows of its trainer. A stream within the process is never silent.
func (t *stream) trainer() *runs.Trainer {
	if t.conn == nil {
		return &runs.Trainer{}
	}
	return &runs.Trainer{IsSilent: t.hearing.silent.Load, End: sync.OnceFunc(func() { close(t.replaced) })}
}
