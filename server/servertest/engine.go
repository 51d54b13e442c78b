// Package servertest has a stand-in for the pipeline, so that the wire can be tested and measured without pictures: its
// batches are cheap, and their bytes are a function of data, seed and name, as a pipeline's are. It starts one
// goroutine per want; Close waits for them.
package servertest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strconv"
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

// Engine implements server.Engine. Fields are set before use; the zero value makes batches of small pictures at once.
type Engine struct {
	// Samples in the data set. Default 1000.
	Samples int
	// Height and Width of every picture. Default 4 × 4. With Ragged, sample i is 1 + i mod Height high.
	Height, Width int
	Ragged        bool
	// Content decides fingerprint and pixels. Two engines of the same content make the same batches.
	Content string
	// Store and Versions are what its data says of versions.
	Store, Versions string
	// Kept, if set, is what scans find that need not list anew.
	Kept *Kept
	// Times is what its data says of the times of files; empty: nothing.
	Times string
	// Digest is what Numerics returns. Default "numerics".
	Digest string
	// Build is what Revisions returns. Default those of this build.
	Build revision.Set
	// Format, if set, is the format of the file of a sample, whose pixels depend on the revision of its codec then.
	Format func(index uint64) string
	// Cores is what Workers returns. Default 2.
	Cores int
	// Delay, if set, is how long a batch takes, however many there are.
	Delay func(*batch.Name) time.Duration
	// SampleTime, if set, is how long each sample keeps one of the Cores, which are given to wants sample by sample as
	// a pipeline's are.
	SampleTime time.Duration
	// Fail, if set, is asked for the error of a batch.
	Fail func(*batch.Name) error
	// Result, if set, may change what is said of a batch before it is handed over.
	Result func(*batch.Name, *pipeline.Result)
	// Damage, if set, may change the bytes of a batch after its checksum was taken.
	Damage func(batch []byte)
	// ScanFiles, if set, is how many files a scan tells that it has found.
	ScanFiles int
	// Scanning, if set, is called by each Scan, which fails with its error.
	Scanning func(ctx context.Context, folder string) error

	running     sync.WaitGroup
	shop        shop
	mu          sync.Mutex                       // may be taken with shop.mu held, never the other way round
	coreSeconds float64                          // of batches made without SampleTime
	wants       map[*pipeline.Want]chan struct{} // closed by Cancel
	made        int
	open        int // snapshots
	listed      int // scans that took no kept list
}

// Kept is what a list says that was made before something changed.
type Kept struct{ Content, Versions string }

// Listed is the number of scans that found what there is, by no kept list.
func (e *Engine) Listed() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.listed
}

func orDefault(n, standard int) int {
	if n == 0 {
		return standard
	}
	return n
}

// Close waits for all wants.
func (e *Engine) Close() { e.running.Wait() }

// Open is the number of snapshots that were not closed.
func (e *Engine) Open() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

// Making is the number of wants that have not ended.
func (e *Engine) Making() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.wants)
}

// Made is the number of wants that have ended.
func (e *Engine) Made() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.made
}

// Numerics implements server.Engine.
func (e *Engine) Numerics() string {
	if e.Digest == "" {
		return "numerics"
	}
	return e.Digest
}

// Revisions implements server.Engine.
func (e *Engine) Revisions() revision.Set {
	if e.Build == nil {
		return revision.Build()
	}
	return e.Build
}

// Kernels implements server.Engine.
func (e *Engine) Kernels() string { return "none" }

// Workers implements server.Engine.
func (e *Engine) Workers() int { return orDefault(e.Cores, 2) }

// Queued implements server.Engine.
func (e *Engine) Queued() float64 { return float64(e.Making()) }

// Scan implements server.Engine.
func (e *Engine) Scan(ctx context.Context, folder snapshots.Folder, anew bool, progress func(files int)) (snapshots.Data, error) {
	if e.ScanFiles > 0 {
		progress(e.ScanFiles)
	}
	if e.Scanning != nil {
		if err := e.Scanning(ctx, folder.Path); err != nil {
			return nil, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open++
	if e.Kept != nil && !anew {
		return &data{engine: e, content: e.Kept.Content, kept: e.Kept}, nil
	}
	e.listed++
	return &data{engine: e, content: e.Content, times: e.Times, listed: time.Now()}, nil
}

// Keep has scans that need not list anew find such a list.
func (e *Engine) Keep(kept Kept) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Kept = &kept
}

// Change gives the folders other content, which the next Scan sees.
func (e *Engine) Change(content string) { e.Rewrite(content, "") }

// Rewrite is Change, with what its data says of times from then on.
func (e *Engine) Rewrite(content, times string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Content, e.Times = content, times
}

// ChangeVersions changes what its data says of versions, while it is in use.
func (e *Engine) ChangeVersions(versions string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Versions = versions
}

type data struct {
	engine  *Engine
	content string
	kept    *Kept // nil: it was listed
	times   string
	listed  time.Time
	once    sync.Once
}

func (d *data) Fingerprint() string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s of %d", d.content, d.Len()))
	return hex.EncodeToString(h[:])
}

func (d *data) Versions() (store, versions string) {
	d.engine.mu.Lock()
	defer d.engine.mu.Unlock()
	if d.kept != nil {
		return d.engine.Store, d.kept.Versions
	}
	return d.engine.Store, d.engine.Versions
}

// Listing implements snapshots.Data.
func (d *data) Listing() string { return d.times }

func (d *data) Listed() time.Time { return d.listed }

func (d *data) Len() int { return orDefault(d.engine.Samples, 1000) }

// Same implements server.Engine.
func (e *Engine) Same(a, b snapshots.Data) bool {
	one, ok := a.(*data)
	other, also := b.(*data)
	return ok && also && one.content == other.content && one.kept == other.kept
}

// classes is the number of classes.
const classes = 10

func (d *data) Classes() []dataset.Class {
	all := make([]dataset.Class, classes)
	digest := binary.BigEndian.Uint64([]byte(d.Fingerprint())[:8])
	for i := range all {
		all[i] = dataset.Class{Name: "class" + strconv.Itoa(i), Samples: (d.Len() + classes - 1 - i) / classes, Digest: uint64(i)}
	}
	all[classes-1].Digest = digest // contents differ in the last class
	return all
}

func (d *data) Close() error {
	d.once.Do(func() {
		d.engine.mu.Lock()
		defer d.engine.mu.Unlock()
		d.engine.open--
	})
	return nil
}

// PrepareMasked implements server.Engine: there are no masks here.
func (e *Engine) PrepareMasked(*pipeline.Plan, snapshots.Data, snapshots.Data) (server.Maker, error) {
	return nil, &batch.PlanError{Field: "masks", Message: "are not offered by this node"}
}

// Prepare implements server.Engine.
func (e *Engine) Prepare(plan *pipeline.Plan, d snapshots.Data) (server.Maker, error) {
	pinned := *plan
	pinned.Source.Fingerprint = d.Fingerprint()
	snapshot, ok := d.(*data)
	if !ok {
		return nil, fmt.Errorf("a %T is no snapshot of this engine", d)
	}
	return &maker{engine: e, plan: &pinned, content: snapshot.content, samples: uint64(d.Len())}, nil
}

type maker struct {
	engine  *Engine
	plan    *pipeline.Plan
	content string
	samples uint64
	pinned  revision.Set // codecs; nil: any
}

// Pin implements server.Maker.
func (m *maker) Pin(codecs revision.Set) { m.pinned = codecs }

// Refuses implements server.Maker.
func (m *maker) Refuses() bool {
	return m.pinned != nil && len(pipeline.CodecUnits(m.engine.Revisions()).Differing(m.pinned)) > 0
}

// refusal is a *pipeline.RevisionError if a sample takes a codec of another revision.
func (m *maker) refusal(r batch.Ref) error {
	if m.engine.Format == nil || m.pinned == nil {
		return nil
	}
	own := m.engine.Revisions().OfFormat(m.engine.Format(r.Index))
	for _, unit := range own.Differing(m.pinned) {
		return &pipeline.RevisionError{Index: r.Index, Key: strconv.Itoa(int(r.Index)), Unit: unit, Pinned: m.pinned[unit], Found: own[unit]}
	}
	return nil
}

func (m *maker) Plan() *pipeline.Plan { return m.plan }

func (m *maker) size() (h, w int) { return orDefault(m.engine.Height, 4), orDefault(m.engine.Width, 4) }

func (m *maker) Fields() []batch.Field {
	h, w := m.size()
	if m.engine.Ragged {
		h, w = 0, 0
	}
	return []batch.Field{
		{Name: "image", DType: "uint8", Shape: []int{h, w, 3}},
		{Name: "label", DType: "int64"},
		{Name: "index", DType: "int64"},
	}
}

func (m *maker) Ops() []transform.Info { return m.plan.Transforms.Infos() }

func (m *maker) Layout(count int) ([]batch.Field, int) { return m.place(count, 0) }

// place lays the fields out; ragged is the size of images of different sizes.
func (m *maker) place(count, ragged int) (fields []batch.Field, bytes int) {
	for _, f := range m.Fields() {
		f.Offset, f.Bytes = bytes, 8*count
		room := f.Bytes
		if f.Name == "image" {
			f.Bytes = count * f.Shape[0] * f.Shape[1] * 3
			room = max(f.Bytes, ragged)
		}
		bytes += batch.AlignUp(room)
		fields = append(fields, f)
	}
	return fields, bytes
}

// Submit implements server.Maker.
func (m *maker) Submit(w *pipeline.Want) error {
	for i := range w.Name.List {
		if w.Name.List[i].Index >= m.samples {
			return &batch.PlanError{Field: "name.list", Message: "no such index"}
		}
	}
	e := m.engine
	cancelled := make(chan struct{})
	e.mu.Lock()
	if e.wants == nil {
		e.wants = map[*pipeline.Want]chan struct{}{}
	}
	e.wants[w] = cancelled
	e.mu.Unlock()
	end := func(r pipeline.Result) {
		e.mu.Lock()
		delete(e.wants, w)
		e.made++
		e.mu.Unlock()
		w.Done(r)
	}
	if e.SampleTime > 0 {
		e.submit(m, w, end)
		return nil
	}
	e.running.Go(func() { end(m.make(w, cancelled)) })
	return nil
}

// Cancel implements server.Maker.
func (m *maker) Cancel(w *pipeline.Want) {
	if m.engine.cancel(w) {
		m.engine.shop.drop(w)
	}
}

// cancel is whether the want had not ended and was not cancelled before.
func (e *Engine) cancel(w *pipeline.Want) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.wants[w]
	if c == nil {
		return false
	}
	close(c)
	e.wants[w] = nil
	return true
}

// Hasten implements server.Maker. Without SampleTime nothing queues.
func (m *maker) Hasten(w *pipeline.Want, a *share.Account, step uint64, due time.Time) {
	s := &m.engine.shop
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry := s.entries[w]; entry != nil {
		s.queue.MoveUp(entry, a, step, due.Sub(s.began).Seconds())
	}
}

func (m *maker) make(w *pipeline.Want, cancelled <-chan struct{}) pipeline.Result {
	e := m.engine
	begun := time.Now()
	if w.Begun != nil {
		w.Begun()
	}
	if e.Delay != nil {
		t := time.NewTimer(e.Delay(&w.Name))
		defer t.Stop()
		select {
		case <-t.C:
		case <-cancelled:
		}
	}
	select {
	case <-cancelled:
		return pipeline.Result{Err: pipeline.ErrCancelled}
	default:
	}
	if e.Fail != nil {
		if err := e.Fail(&w.Name); err != nil {
			return pipeline.Result{Err: err}
		}
	}
	r := m.fill(w)
	r.Begun = begun
	r.CoreSeconds = time.Since(begun).Seconds()
	if e.Result != nil {
		e.Result(&w.Name, &r)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.coreSeconds += r.CoreSeconds
	return r
}

// fill writes a batch.
func (m *maker) fill(w *pipeline.Want) pipeline.Result {
	count := w.Name.Len()
	refs := make([]batch.Ref, count)
	sizes := make([][2]int, count)
	ragged := 0
	for i := range refs {
		refs[i] = m.ref(&w.Name, i)
		if err := m.refusal(refs[i]); err != nil {
			return pipeline.Result{Err: err}
		}
		sizes[i][0], sizes[i][1] = m.size()
		if m.engine.Ragged {
			sizes[i][0] = 1 + int(refs[i].Index)%sizes[i][0]
			ragged += 3 * sizes[i][0] * sizes[i][1]
		}
	}
	fields, bytes := m.place(count, ragged)
	if ragged > 0 && w.Charge != nil && !w.Charge(ragged) {
		return pipeline.Result{Err: &pipeline.RoomError{Bytes: bytes}}
	}
	dst := w.Dst
	if len(dst) < bytes && w.Grow != nil {
		dst = w.Grow(bytes)
	}
	if len(dst) < bytes {
		return pipeline.Result{Err: &pipeline.RoomError{Bytes: bytes}}
	}
	clear(dst[:bytes])
	at := 0
	for i, r := range refs {
		n := 3 * sizes[i][0] * sizes[i][1]
		m.pixels(dst[at:at+n], r)
		at += n
		binary.LittleEndian.PutUint64(dst[fields[1].Offset+8*i:], r.Index%classes)
		binary.LittleEndian.PutUint64(dst[fields[2].Offset+8*i:], r.Index)
	}
	r := pipeline.Result{Bytes: bytes, Fields: fields}
	if m.engine.Ragged {
		r.Sizes = sizes
	}
	if w.Checksum {
		r.CRC32C = crc32.Checksum(dst[:bytes], crc32.MakeTable(crc32.Castagnoli))
	}
	if m.engine.Damage != nil {
		m.engine.Damage(dst[:bytes])
	}
	return r
}

// ref is sample i of a name. The order is a rotation by epoch and seed.
func (m *maker) ref(n *batch.Name, i int) batch.Ref {
	if n.List != nil {
		return n.List[i]
	}
	p := n.Position + uint64(i)
	return batch.Ref{Index: (p + uint64(n.Epoch) + m.plan.Seed) % m.samples, Repeat: uint32(p / m.samples)}
}

// pixels is a cheap function of content, index and repeat.
func (m *maker) pixels(dst []byte, r batch.Ref) {
	x := r.Index*0x9e3779b97f4a7c15 + uint64(r.Repeat) + uint64(crc32.ChecksumIEEE([]byte(m.content)))
	if m.engine.Format != nil {
		x += uint64(m.engine.Revisions()[revision.Codec(m.engine.Format(r.Index))]) << 32
	}
	n := min(len(dst), 96)
	for i := range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		dst[i] = byte(x)
	}
	for n < len(dst) {
		n += copy(dst[n:], dst[:n])
	}
}

// Replay implements server.Maker.
func (m *maker) Replay(ctx context.Context, n batch.Name, most int, _ *share.Account) ([]pipeline.Sample, error) {
	samples := make([]pipeline.Sample, n.Len())
	for i := range samples {
		r := m.ref(&n, i)
		if r.Index >= m.samples {
			return nil, &batch.PlanError{Field: "name.list", Message: "no such index"}
		}
		if err := m.refusal(r); err != nil && most > 0 {
			return nil, err
		}
		s := pipeline.Sample{Ref: r, Key: "class" + strconv.Itoa(int(r.Index%classes)) + "/" + strconv.Itoa(int(r.Index)), Label: int64(r.Index % classes), EncodedBytes: 100}
		if r.Index%classes == classes-1 {
			s.EncodedBytes += int64(len(m.content)) // contents differ in the last class
		}
		if most > 0 {
			s.Height, s.Width = m.size()
			if n := 3 * s.Height * s.Width; n > most {
				return nil, &pipeline.RoomError{Bytes: n}
			}
			s.Image = make([]byte, 3*s.Height*s.Width)
			m.pixels(s.Image, r)
		}
		samples[i] = s
	}
	return samples, ctx.Err()
}
