package agent

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// serveSocket serves until the socket closes or ctx ends, and returns when nothing of the loader runs any more.
func (l *loader) serveSocket(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = l.conn.Close() })
	defer stop()
	var writer sync.WaitGroup
	writer.Go(l.outbox.writePackets)
	l.agent.options.Warnings.sendTo(l)
	err := l.readPackets(ctx)
	if err != nil && ctx.Err() == nil {
		l.agent.options.Log.Error("a Loader's socket", "error", err)
		l.outbox.queuePacket(noticePacket("warning", "the agent gives this Loader up: "+err.Error()))
	}
	cancel()
	l.calls.Wait()
	l.releaseAll()
	l.outbox.close()
	writer.Wait()
	_ = l.conn.Close()
}

// releaseAll lets go of the fleet, which answers all wants, and of the slots.
func (l *loader) releaseAll() {
	l.mu.Lock()
	fleet, s, table := l.fleet, l.slots, l.table
	l.slots = nil
	l.session.End(time.Now())
	l.mu.Unlock()
	if fleet != nil {
		fleet.Close()
	}
	if table != nil {
		_ = table.Close() // it was read
	}
	l.conversions.Wait()
	l.spans.close()
	if s == nil {
		return
	}
	if l.agent.trainerGone() { // if it lives it may look at batches in there for as long as it likes
		s.discardMemory() // perhaps again: batches in the making have written to it since
	}
	s.endUse()
}

// readPackets handles packets until the socket closes.
func (l *loader) readPackets(ctx context.Context) error {
	packet := make([]byte, maxPacket)
	for {
		b, files, err := readPacket(l.conn, packet)
		if err != nil {
			return nil //nolint:nilerr // closed, by either end
		}
		if len(b) == 0 {
			closeAll(files)
			return fmt.Errorf("an empty packet")
		}
		if err := l.handlePacket(ctx, b[0], b[1:], files); err != nil {
			return err
		}
	}
}

func (l *loader) handlePacket(ctx context.Context, kind byte, body []byte, files []*os.File) error {
	switch kind {
	case kindVersion:
		closeAll(files)
		return l.handleGreeting(body)
	case kindCall:
		c, err := parseCall(body, files)
		if err != nil {
			closeAll(files)
			return err
		}
		mismatch := l.mismatch
		l.calls.Go(func() { l.answerCall(ctx, c, mismatch, files[0], files[1:]) })
		return nil
	case kindWants:
		closeAll(files)
		wants, err := parseWants(body)
		for _, w := range wants {
			l.sendWant(w)
		}
		return err
	case kindPolicy:
		closeAll(files)
		return l.policies.storePolicy(body)
	case kindSpan:
		closeAll(files)
		return l.spans.setParent(body)
	case kindReturned:
		closeAll(files)
		return l.spans.handleReturned(body)
	case kindPulse:
		closeAll(files)
		p, err := parsePulse(body)
		if err == nil {
			l.handlePulse(p)
		}
		return err
	case kindCancel:
		closeAll(files)
		ids, err := parseCancel(body)
		for _, id := range ids {
			l.cancelWant(id)
		}
		return err
	}
	closeAll(files)
	return fmt.Errorf("a packet of unknown kind %q", kind)
}
