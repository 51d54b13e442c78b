package loader

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Batch is one delivered batch. It owns its memory until Release; views into it must not be used afterwards.
type Batch struct {
	Epoch uint32
	// Position of the first of Count consecutive positions of the epoch's order. The first Valid of them count; see
	// order.Epoch.
	Position     uint64
	Count, Valid int
	// Fields describe the arrays.
	Fields []*pb.Field
	// Errors are the samples that did not decode, where the plan says skip or substitute.
	Errors []*pb.SampleError
	// Node that made it.
	Node string

	data     []byte
	slots    *slots
	released atomic.Bool
}

func newBatch(p *pending, r client.Result, s *slots) *Batch {
	s.lent.Add(1)
	return &Batch{
		Epoch: p.epoch, Position: p.share.Position, Count: p.share.Count, Valid: p.share.Valid,
		Fields: r.Header.Fields, Errors: r.Header.Errors, Node: r.Node, data: r.Data, slots: s,
	}
}

// Release gives the memory back, exactly once. Under the race detector a second Release panics and released memory is
// overwritten.
func (b *Batch) Release() {
	if b.released.Swap(true) {
		if Checked {
			panic("feedwater: a batch was released twice")
		}
		return
	}
	b.slots.lent.Add(-1)
	b.slots.put(b.data)
	b.data = nil
}

func (b *Batch) field(name string) *pb.Field {
	for _, f := range b.Fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Bytes is a field as it lies in memory; nil if there is no such field.
func (b *Batch) Bytes(name string) []byte {
	f := b.field(name)
	if f == nil {
		return nil
	}
	n, _ := node.FieldBytes(f)
	return b.data[f.Offset : f.Offset+n]
}

// Int64s is a copy of a field of type int64; nil if there is none.
func (b *Batch) Int64s(name string) []int64 {
	if f := b.field(name); f == nil || f.Dtype != "int64" {
		return nil
	}
	raw := b.Bytes(name)
	v := make([]int64, len(raw)/8)
	for i := range v {
		v[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return v
}

// Labels is the field "label".
func (b *Batch) Labels() []int64 { return b.Int64s("label") }

// Indices is the field "index": each sample's place in the data set.
func (b *Batch) Indices() []int64 { return b.Int64s("index") }

// Images is the field "image": the samples' pixels behind each other.
func (b *Batch) Images() []byte { return b.Bytes("image") }

// Image is the picture of sample i, height × width × 3 bytes, and its size; nil if the plan asks for no images.
func (b *Batch) Image(i int) (pix []byte, height, width int) { return b.Picture("image", i) }

// Picture is that of sample i in a field of pictures: "image", or "image.0" and so on for a plan with views, "mask";
// nil if there is no such field.
func (b *Batch) Picture(field string, i int) (pix []byte, height, width int) {
	f := b.field(field)
	if f == nil || len(f.Shape) < 3 || f.Dtype != "uint8" {
		return nil, 0, 0
	}
	all := b.Bytes(field)
	if len(f.RaggedOffsets) > i+1 {
		h, w := f.RaggedShapes[3*i], f.RaggedShapes[3*i+1]
		return all[f.RaggedOffsets[i]:f.RaggedOffsets[i+1]], int(h), int(w)
	}
	size := len(all) / b.Count
	return all[i*size : (i+1)*size], int(f.Shape[1]), int(f.Shape[2])
}

// slots is memory for batches that goes round. The zero value is empty; it grows when nothing is free, so a batch that
// is kept never blocks the others.
type slots struct {
	lent atomic.Int64 // batches that were delivered and not released

	mu   sync.Mutex
	free [][]byte
}

// count is how many are free.
func (s *slots) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.free)
}

// get returns n bytes or more.
func (s *slots) get(n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.free) - 1; i >= 0; i-- {
		if b := s.free[i]; cap(b) >= n {
			s.free = append(s.free[:i], s.free[i+1:]...)
			return b[:cap(b)]
		}
	}
	return make([]byte, n)
}

// put takes memory back, if there is any.
func (s *slots) put(b []byte) {
	if b = b[:cap(b)]; len(b) == 0 {
		return
	}
	if Checked {
		for i := range b {
			b[i] = 0xdb
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, b)
}
