package dataset

import (
	"context"
	"errors"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Extent is where in an object a sample and its values lie.
type Extent struct {
	Object     int
	Begin, End int64
}

// mostTogether is how many bytes one question about several samples asks for at most: more would come one after the other that come side by side.
const mostTogether = 1 << 20

// Joins reports whether ReadTogether may spare questions: the samples are parts of objects on a server.
func (s *Snapshot) Joins() bool {
	return s.origin != "" && s.form&manifest.Members != 0 && s.form&manifest.Packed == 0
}

// ExtentOf is where a sample lies, if its bytes are read in one piece.
func (s *Snapshot) ExtentOf(sample *Sample) (e Extent, whole bool) {
	e = Extent{sample.Object, sample.Offset, sample.Offset + sample.Size}
	if !s.ValuesInFiles() {
		return e, true
	}
	needed := sample.Size
	for _, v := range sample.Values {
		e.Begin, e.End = min(e.Begin, v.Offset), max(e.End, v.Offset+v.Size)
		needed += v.Size
	}
	return e, e.End-e.Begin <= needed+maxGap
}

// Join makes an extent one with another that begins no earlier, if both are worth one question.
func (e *Extent) Join(next Extent) bool {
	end := max(e.End, next.End)
	if e.Object != next.Object || next.Begin > e.End+maxGap || end-e.Begin > mostTogether {
		return false
	}
	e.End = end
	return true
}

// joined is a sample that is read together with others.
type joined struct {
	extent Extent
	parts  []part
}

// take copies what belongs to a sample out of bytes that begin at an offset of its object.
func (j *joined) take(from []byte, at int64) {
	for _, p := range j.parts {
		copy(p.to, from[p.offset-at:])
	}
}

// ReadTogether is Read of several samples of one object, in the order in which they lie there, each over its buffer: with as few questions as Extent.Join
// says, and one version check each. Where it fails nothing is known of any of them: unless IsOfServer says so of the error, each has to be read alone.
func (s *Snapshot) ReadTogether(ctx context.Context, all []int, bufs [][]byte) error {
	r := requests.Get().(*request)
	defer requests.Put(r)
	samples := make([]joined, len(all))
	for k, i := range all {
		sample, err := s.At(i, r.room)
		if err != nil {
			return err
		}
		r.room = sample.Key[:0]
		if sample.Size > s.maxBytes {
			return &TooLargeError{Path: string(sample.Key), Size: sample.Size, Limit: s.maxBytes}
		}
		if need := int(sample.Size) + Spare + valueBytes(s.form, &sample); cap(bufs[k]) < need {
			bufs[k] = make([]byte, 0, need+need/4)
		}
		if err := s.locate(&sample, r); err != nil {
			return err
		}
		bufs[k] = bufs[k][:sample.Size]
		samples[k].parts = []part{{sample.Offset, bufs[k]}}
		if s.ValuesInFiles() {
			samples[k].parts = s.partsOf(&sample, bufs[k][:cap(bufs[k])])
		}
		samples[k].extent, _ = s.ExtentOf(&sample)
	}
	return s.readThrough(ctx, s.generation.Load(), func(from *source) error { return s.readJoined(ctx, from, &r.object, samples) })
}

// IsOfServer reports whether a read failed of its server, and not of what was read: of trouble that did not pass, or since this process has no access.
// Whoever asks the server for other bytes of the object meets the same.
func IsOfServer(err error) bool {
	return errors.As(err, new(*store.TroubleError)) || errors.As(err, new(*store.AccessError))
}

// readJoined reads the samples that the disk which keeps blocks has not.
func (s *Snapshot) readJoined(ctx context.Context, from *source, o *store.Object, all []joined) error {
	room, _ := spans.Get().(*[]byte)
	defer spans.Put(room)
	grow := func(e Extent) []byte {
		if int64(cap(*room)) < e.End-e.Begin {
			*room = make([]byte, e.End-e.Begin)
		}
		return (*room)[:e.End-e.Begin]
	}
	missing := all[:0]
	for _, j := range all {
		e := j.extent
		if s.blocks != nil && e.End > e.Begin {
			if span := grow(e); s.blocks.Read(s.key(o, "", e.Begin, e.End-e.Begin), span) {
				j.take(span, e.Begin)
				continue
			}
		}
		missing = append(missing, j)
	}
	for len(missing) > 0 {
		e, n := missing[0].extent, 1
		for n < len(missing) && e.Join(missing[n].extent) {
			n++
		}
		span := grow(e)
		if err := from.ReadAt(ctx, o, span, e.Begin); err != nil {
			return err
		}
		for _, j := range missing[:n] {
			j.take(span, e.Begin)
			if own := j.extent; s.blocks != nil && own.End > own.Begin {
				s.blocks.Write(s.key(o, "", own.Begin, own.End-own.Begin), span[own.Begin-e.Begin:own.End-e.Begin])
			}
		}
		missing = missing[n:]
	}
	return nil
}
