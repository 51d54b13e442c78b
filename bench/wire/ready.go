package main

import (
	"context"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/control/share"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	"github.com/feedwater-io/feedwater/pipeline/transform"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/snapshots"
)

const (
	side        = 224
	sampleBytes = side * side * 3
	align       = 64 // of fields in a batch
)

// ready is an engine whose batches are made before they are wanted: a slot is filled with noise when it is first seen, and what is in
// it is the batch from then on. So a measurement sees the wire alone.
type ready struct {
	mu   sync.Mutex
	sums map[*byte]uint32 // of the slots that are filled, by their first byte
}

// The parts of server.Engine that play no role here.
func (*ready) Numerics() string             { return "none" }
func (*ready) Revisions() revision.Set      { return revision.Build() }
func (*ready) Kernels() string              { return "none" }
func (*ready) Workers() int                 { return 1 }
func (*ready) Queued() float64              { return 0 }
func (*ready) Ahead(*share.Account) float64 { return 0 }
func (*ready) Work() pipeline.Work          { return pipeline.Work{} }

func (e *ready) Scan(context.Context, snapshots.Folder, bool, func(int)) (snapshots.Data, error) {
	return nothing{}, nil
}

func (e *ready) Same(snapshots.Data, snapshots.Data) bool { return true }

// PrepareMasked implements server.Engine; there are no masks here.
func (*ready) PrepareMasked(*pipeline.Plan, snapshots.Data, snapshots.Data) (server.Maker, error) {
	return nil, &batch.PlanError{Field: "masks", Message: "are not offered by this node"}
}

func (e *ready) Prepare(plan *pipeline.Plan, d snapshots.Data) (server.Maker, error) {
	pinned := *plan
	pinned.Source.Fingerprint = d.Fingerprint()
	return &maker{e, &pinned}, nil
}

// nothing is the data: a million samples of one class, none of which is ever looked at.
type nothing struct{}

func (nothing) Fingerprint() string        { return strings.Repeat("00", 32) }
func (nothing) Versions() (string, string) { return "", "" }
func (nothing) Listing() string            { return "" }
func (nothing) Listed() time.Time          { return time.Now() }
func (nothing) Len() int                   { return 1 << 20 }
func (nothing) Classes() []dataset.Class   { return []dataset.Class{{Name: "noise", Samples: 1 << 20}} }
func (nothing) Close() error               { return nil }

type maker struct {
	engine *ready
	plan   *pipeline.Plan
}

func (m *maker) Plan() *pipeline.Plan { return m.plan }
func (*maker) Ops() []transform.Info  { return nil }
func (*maker) Cancel(*pipeline.Want)  {}
func (*maker) Pin(revision.Set)       {}
func (*maker) Refuses() bool          { return false }

func (*maker) Hasten(*pipeline.Want, *share.Account, uint64, time.Time) {}

// Fields are those of any plan, and labels whether wanted or not.
func (*maker) Fields() []batch.Field {
	return []batch.Field{
		{Name: "image", DType: "uint8", Shape: []int{side, side, 3}},
		{Name: "label", DType: "int64"},
		{Name: "index", DType: "int64"},
	}
}

func (m *maker) Layout(count int) (fields []batch.Field, bytes int) {
	fields = m.Fields()
	for i, size := range []int{sampleBytes, 8, 8} {
		fields[i].Offset, fields[i].Bytes = bytes, count*size
		bytes += (count*size + align - 1) &^ (align - 1)
	}
	return fields, bytes
}

func (m *maker) Replay(context.Context, batch.Name, int, *share.Account) ([]pipeline.Sample, error) {
	return nil, errors.New("nothing to replay")
}

func (m *maker) Submit(w *pipeline.Want) error {
	fields, bytes := m.Layout(w.Name.Len())
	w.Done(pipeline.Result{Bytes: bytes, Fields: fields, CRC32C: m.engine.fill(w.Dst[:bytes], fields[0].Bytes)})
	return nil
}

// fill makes noise of a new slot's images, and zeros of what comes after them.
func (e *ready) fill(dst []byte, images int) uint32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	sum, ok := e.sums[&dst[0]]
	if !ok {
		var seed [32]byte
		seed[0] = byte(len(e.sums))
		_, _ = rand.NewChaCha8(seed).Read(dst[:images])
		clear(dst[images:])
		sum = crc32.Checksum(dst, crc32.MakeTable(crc32.Castagnoli))
		e.sums[&dst[0]] = sum
	}
	return sum
}
