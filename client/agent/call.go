package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/agent/lasthop"
)

// answerCall runs a call, unless the trainer is of another release, and writes its result to the trainer's file.
func (l *loader) answerCall(ctx context.Context, c call, mismatch error, result *os.File, more []*os.File) {
	defer result.Close()
	v, blob, err := l.runCall(ctx, c, mismatch, more)
	body := []byte(nil)
	if err != nil {
		body = describeError(err).toJSON()
	} else {
		body = mustJSON(v)
	}
	if werr := writeParts(result, body, blob); werr != nil {
		err = fmt.Errorf("write the result of %s: %w", c.method, werr)
		l.agent.options.Log.Error("a call", "method", c.method, "error", err)
		body, blob = nil, nil
	}
	l.outbox.queuePacket(answerPacket(c.seq, err == nil, len(body), len(blob)))
}

func writeParts(f *os.File, parts ...[]byte) error {
	offset := int64(0)
	for _, p := range parts {
		if _, err := f.WriteAt(p, offset); err != nil {
			return err
		}
		offset += int64(len(p))
	}
	return nil
}

func (l *loader) runCall(ctx context.Context, c call, mismatch error, files []*os.File) (v any, blob []byte, err error) {
	if mismatch != nil {
		closeAll(files)
		return nil, nil, mismatch
	}
	if c.method == "slots" {
		if len(files) != 1 {
			closeAll(files)
			return nil, nil, fmt.Errorf("slots: %d handles", len(files))
		}
		v, err = l.setSlots(c.params, files[0])
		return v, nil, err
	}
	if c.method == "open" {
		v, err = l.openWith(ctx, c.params, files)
		return v, nil, err
	}
	closeAll(files)
	switch c.method {
	case "replay":
		return l.replaySamples(ctx, c.params)
	case "listing":
		return l.listFolder(ctx, c.params)
	case "status":
		v = l.fleetStatus()
	default:
		err = fmt.Errorf("unknown method %q", c.method)
	}
	return v, nil, err
}

type slotsParams struct {
	Count   int          `json:"count"`
	Stride  int          `json:"stride"`
	Batch   int          `json:"batch"`
	LastHop lasthop.Hops `json:"last_hop"`
}

type slotsResult struct {
	Fields []batch.Field `json:"fields"`
	Bytes  int           `json:"bytes"`
}

func (l *loader) setSlots(params json.RawMessage, memory *os.File) (*slotsResult, error) {
	p := slotsParams{}
	if err := json.Unmarshal(params, &p); err != nil {
		_ = memory.Close()
		return nil, fmt.Errorf("slots: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.info == nil || p.Batch < 1 {
		_ = memory.Close()
		return nil, fmt.Errorf("slots for batches of %d, before a plan was opened or of no samples", p.Batch)
	}
	s, err := mapSlots(memory, p.Count, p.Stride, p.Batch, l.info.Fields, p.LastHop)
	if err != nil {
		return nil, err
	}
	if l.slots != nil {
		l.slots.endUse()
	}
	l.slots = s
	return &slotsResult{s.fields, s.bytes}, nil
}
