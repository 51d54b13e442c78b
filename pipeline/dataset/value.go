package dataset

import (
	"sync"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
)

// Values that are members of shards are read with their picture. They stand behind it, where Read was told to write: from Spare bytes behind its
// end on, one after another.

// valueBytes is what the values of a sample take behind its picture, in lists of a form.
func valueBytes(form manifest.Form, sample *Sample) (n int) {
	if form.HoldsValues() {
		return 0
	}
	for _, v := range sample.Values {
		n += int(v.Size)
	}
	return n
}

// ReadValue is value k of a sample: what At told, or what lies behind the picture that Read returned, which may have been cut at its end only.
func (s *Snapshot) ReadValue(sample *Sample, k int, read []byte) []byte {
	if s.form.HoldsValues() {
		return sample.Values[k].Data
	}
	at := int(sample.Size) + Spare
	for _, v := range sample.Values[:k] {
		at += int(v.Size)
	}
	return read[at : at+int(sample.Values[k].Size) : at+int(sample.Values[k].Size)]
}

// part is bytes of an object that go to a place.
type part struct {
	offset int64
	to     []byte
}

// partsOf are the picture of a sample and its values, and their places in buf.
func (s *Snapshot) partsOf(sample *Sample, buf []byte) []part {
	parts := []part{{sample.Offset, buf[:sample.Size]}}
	for k, v := range sample.Values {
		parts = append(parts, part{v.Offset, s.ReadValue(sample, k, buf)})
	}
	return parts
}

// maxGap is how many bytes that nobody needs are read at most so that one read brings all: on the way to a server a question costs more.
const maxGap = 64 << 10

// spans are buffers for what is read in one piece.
var spans = sync.Pool{New: func() any { return new([]byte) }}

// readParts reads parts of one object, all at once where they lie close together.
func readParts(parts []part, read func(p []byte, off int64) error) error {
	begin, end, needed := parts[0].offset, parts[0].offset, int64(0)
	for _, p := range parts {
		begin, end = min(begin, p.offset), max(end, p.offset+int64(len(p.to)))
		needed += int64(len(p.to))
	}
	if end-begin > needed+maxGap {
		for _, p := range parts {
			if len(p.to) == 0 {
				continue
			}
			if err := read(p.to, p.offset); err != nil {
				return err
			}
		}
		return nil
	}
	room, _ := spans.Get().(*[]byte)
	defer spans.Put(room)
	if int64(cap(*room)) < end-begin {
		*room = make([]byte, end-begin)
	}
	span := (*room)[:end-begin]
	if err := read(span, begin); err != nil {
		return err
	}
	for _, p := range parts {
		copy(p.to, span[p.offset-begin:])
	}
	return nil
}
