package pipeline

import (
	"slices"
	"sync"

	"github.com/feedwater-io/feedwater/pipeline/augment"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/sidecar"
)

// A Job is a plan on a snapshot, ready to make batches. It holds no position and no goroutine, and may be used by many
// callers at once. The snapshot must stay open as long as the job is used.
type Job struct {
	p        *Pipeline
	plan     *Plan
	hash     string
	snapshot *dataset.Snapshot
	fields   []Field
	// height and width of every sample's image, 0 where samples differ; pixels is its bytes. tail appends one to a checksum.
	height, width, pixels int
	tail                  shift
	images                bool           // the plan asks for images
	index                 *sidecar.Store // nil: none is kept
	substitute            order.Key

	mu     sync.Mutex
	orders map[uint32]*order.Permutation // of the epochs in use; guarded by mu
}

// Prepare binds a plan to a snapshot. A plan that pins no fingerprint gets the snapshot's; a plan that pins another one is a
// *PlanError. The plan is not changed.
func (p *Pipeline) Prepare(plan *Plan, s *dataset.Snapshot) (*Job, error) {
	pinned := *plan
	switch pinned.Source.Fingerprint {
	case "":
		pinned.Source.Fingerprint = s.Fingerprint()
	case s.Fingerprint():
	default:
		return nil, &PlanError{Field: "source.fingerprint", Message: "the data here is " + s.Fingerprint() + ", the plan pins " + pinned.Source.Fingerprint}
	}
	j := &Job{p: p, plan: &pinned, hash: pinned.Hash(), snapshot: s, orders: map[uint32]*order.Permutation{}}
	j.substitute = order.NewKey(pinned.Seed, "substitute")
	j.height, j.width, _ = pinned.Transforms.OutputSize()
	j.pixels = j.height * j.width * 3
	j.tail = newShift(j.pixels)
	j.images = slices.Contains(pinned.Fields, "image")
	if j.images {
		j.index = p.indexes.of(s.Fingerprint(), s.Len())
	}
	names := slices.Clone(pinned.Fields)
	if j.images && pinned.Transforms.Boxes() > 0 {
		names = append(names, boxField)
	}
	for _, name := range append(names, "index") {
		f := Field{Name: name, DType: "int64"}
		switch name {
		case "image":
			f = Field{Name: name, DType: "uint8", Shape: []int{j.height, j.width, 3}}
		case boxField:
			f.Shape = []int{pinned.Transforms.Boxes(), len(augment.Box{})}
		}
		j.fields = append(j.fields, f)
	}
	return j, nil
}

// Plan is the canonical plan, with its fingerprint pinned. Not to be changed.
func (j *Job) Plan() *Plan { return j.plan }

// Hash is Plan().Hash().
func (j *Job) Hash() string { return j.hash }

// Snapshot is the data the job reads.
func (j *Job) Snapshot() *dataset.Snapshot { return j.snapshot }

// Samples is the number of samples in the snapshot.
func (j *Job) Samples() uint64 { return uint64(j.snapshot.Len()) }

// boxField is the array of the rectangles that the last hop erases, for plans with RandomErasing.
const boxField = "erase"

// Fields lists the arrays of every batch in the order they are placed, "index" last.
func (j *Job) Fields() []Field { return j.fields }

// FixedSize tells whether all samples have images of one size, so that a batch's size follows from its count.
func (j *Job) FixedSize() bool { return j.pixels > 0 }

// Layout places the fields of a batch of count samples. Where samples differ in size the image comes last, and bytes is what lies
// before it.
func (j *Job) Layout(count int) (fields []Field, bytes int) { return place(j.fields, count) }

// Ops describes what the plan compiles to, in order.
func (j *Job) Ops() []augment.Info { return j.plan.Transforms.Infos() }

// Submit queues a want. On an error Done is not called: a *PlanError if the name is not one of this job, a *RoomError if Dst is too
// small for what is known beforehand, or ErrClosed.
func (j *Job) Submit(w *Want) error {
	if err := j.check(&w.Name); err != nil {
		return err
	}
	w.prepare(j)
	if len(w.Dst) < w.made.bytes {
		return &RoomError{w.made.bytes}
	}
	if !j.p.queue.push(w) {
		return ErrClosed
	}
	return nil
}

// check returns a *PlanError if the name is not one of this job.
func (j *Job) check(n *Name) error {
	if err := j.plan.Transforms.CheckPolicy(n.Policy); err != nil {
		return &PlanError{Field: "name.policy", Message: err.Error()}
	}
	return n.check(j.Samples())
}

// permutation returns the order of an epoch.
func (j *Job) permutation(epoch uint32) *order.Permutation {
	j.mu.Lock()
	defer j.mu.Unlock()
	if o := j.orders[epoch]; o != nil {
		return o
	}
	if len(j.orders) >= 4 { // a job works on one or two epochs at a time
		clear(j.orders)
	}
	o := order.Identity(j.Samples())
	if j.plan.Shuffle {
		o = order.NewPermutation(j.Samples(), j.plan.Seed, epoch)
	}
	j.orders[epoch] = o
	return o
}
