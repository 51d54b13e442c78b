package pipeline

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// A Job is a plan on a snapshot, ready to make batches. It holds no position and no goroutine, and may be used by many
// callers at once. The snapshot must stay open as long as the job is used.
type Job struct {
	p          *Pipeline
	plan       *Plan
	hash       string
	snapshot   *dataset.Snapshot
	root       *bulkhead.Root   // of its files
	ahead      int              // files that are read at once before workers need them
	joins      bool             // of these, those that lie side by side are worth one question
	roots      []*bulkhead.Root // that a sample is read from; none where no file is
	fields     []batch.Field
	pictures   []picture // none where the plan asks for no images
	values     []valueField
	masks      *masks                     // nil: none
	pixels     string                     // what its pictures are kept under, besides their number
	index      atomic.Pointer[namedStore] // see indexNow
	substitute order.Key
	refused    map[string]*RevisionError // by format; nil: none
	oversize   *RevisionError            // for pictures beyond the limits; nil: none

	mu     sync.Mutex
	orders map[uint32]*order.Permutation // of the epochs in use; guarded by mu
}

// Prepare binds a plan to a snapshot. A plan that pins no fingerprint gets the snapshot's; a plan that pins another one
// is a *PlanError. The plan is not changed.
func (p *Pipeline) Prepare(plan *Plan, s *dataset.Snapshot) (*Job, error) {
	pinned := *plan
	switch pinned.Source.Fingerprint {
	case "":
		pinned.Source.Fingerprint = s.Fingerprint()
	case s.Fingerprint():
	default:
		return nil, &batch.PlanError{Field: "source.fingerprint", Message: "the data here is " + s.Fingerprint() + ", the plan pins " + pinned.Source.Fingerprint}
	}
	if s.Unlabelled() && pinned.wantsField("label") {
		why := s.WhyUnlabelled()
		if why != "" {
			why = " (" + why + ")"
		}
		return nil, &batch.PlanError{Field: "fields", Message: "the data has no labels" + why + ", and batches of this plan have them: name what has them by label=, or ask for others, as fields=(\"image\",)"}
	}
	if err := pinned.Shuffle.checkFor(uint64(s.Len())); err != nil {
		return nil, err
	}
	j := &Job{p: p, plan: &pinned, hash: pinned.Hash(), snapshot: s, root: p.rootOf(s), orders: map[uint32]*order.Permutation{}}
	j.substitute = order.NewKey(pinned.Seed, "substitute")
	j.pixels = namePixels(&pinned)
	var err error
	if j.values, err = listValues(&pinned, s); err != nil {
		return nil, err
	}
	if pinned.wantsField(imageField) {
		j.pictures = pinned.listPictures()
	}
	if j.readsFiles() {
		j.roots = []*bulkhead.Root{j.root}
		j.ahead = s.Ahead()
		j.joins = s.Joins()
	}
	if len(j.pictures) > 0 {
		j.index.Store(p.indexes.storeOf(s.Fingerprint(), s.Len()))
	}
	j.setFields()
	return j, nil
}

// setFields lists the arrays of a batch: those of the plan, pictures as so many as there are, the rectangles of theirs,
// the index.
func (j *Job) setFields() {
	for _, name := range j.plan.Fields {
		if i := slices.IndexFunc(j.values, func(v valueField) bool { return v.name == name }); i >= 0 {
			j.fields = append(j.fields, j.values[i].fieldOf())
			continue
		}
		if name == drawsField {
			j.fields = append(j.fields, drawsFieldOf(j.plan.Transforms))
			continue
		}
		if name != imageField && name != maskField {
			j.fields = append(j.fields, batch.Field{Name: name, DType: "int64"})
			continue
		}
		for i := range j.pictures {
			if j.pictures[i].mask == (name == maskField) {
				j.fields = append(j.fields, j.pictures[i].fieldOf())
			}
		}
	}
	for _, p := range j.pictures {
		if n := p.chain.Boxes(); n > 0 {
			j.fields = append(j.fields, batch.Field{Name: p.boxes, DType: "int64", Shape: []int{n, len(transform.Box{})}})
		}
	}
	j.fields = append(j.fields, batch.Field{Name: "index", DType: "int64"})
}

// Plan is the canonical plan, with its fingerprint pinned. Not to be changed.
func (j *Job) Plan() *Plan { return j.plan }

// Hash is Plan().Hash().
func (j *Job) Hash() string { return j.hash }

// Snapshot is the data the job reads.
func (j *Job) Snapshot() *dataset.Snapshot { return j.snapshot }

// Samples is the number of samples in the snapshot.
func (j *Job) Samples() uint64 { return uint64(j.snapshot.Len()) }

// Fields lists the arrays of every batch in the order they are placed, "index" last.
func (j *Job) Fields() []batch.Field { return j.fields }

// FixedSize tells whether all samples have images of one size, so that a batch's size follows from its count.
func (j *Job) FixedSize() bool { return len(j.pictures) == 0 || !j.pictures[0].isRagged() }

// Layout places the fields of a batch of count samples. Where samples differ in size the image comes last, and bytes is
// what lies before it.
func (j *Job) Layout(count int) (fields []batch.Field, bytes int) {
	return batch.Place(j.fields, count)
}

// Ops describes what the plan compiles to, in order; those of one view after those of the other.
func (j *Job) Ops() []transform.Info {
	all := j.plan.Transforms.Infos()
	for _, c := range j.plan.Views {
		all = append(all, c.Infos()...)
	}
	return all
}

// Submit queues a want. On an error Done is not called: a *PlanError if the name is not one of this job, a *RoomError
// if Dst is too small for what is known beforehand, or ErrClosed.
func (j *Job) Submit(w *Want) error {
	if err := j.checkName(&w.Name); err != nil {
		return err
	}
	w.prepareFor(j)
	if len(w.Dst) < w.assembly.bytes {
		return &RoomError{w.assembly.bytes}
	}
	w.ahead = j.p.ahead.plan(w)
	if !j.p.queue.pushWant(w) {
		j.p.ahead.drop(w.ahead)
		return ErrClosed
	}
	j.p.ahead.begin(w.ahead)
	return nil
}

// checkName returns a *PlanError if the name is not one of this job.
func (j *Job) checkName(n *batch.Name) error {
	if err := j.checkPolicy(n.Policy); err != nil {
		return &batch.PlanError{Field: "name.policy", Message: err.Error()}
	}
	return n.Check(j.Samples())
}

// checkPolicy returns what is wrong with a policy that no picture's transforms take.
func (j *Job) checkPolicy(policy []byte) (err error) {
	for _, p := range j.pictures {
		if err = p.chain.CheckPolicy(policy); err == nil {
			return nil
		}
	}
	if len(j.pictures) == 0 && len(policy) > 0 {
		return fmt.Errorf("%d bytes for a plan without pictures", len(policy))
	}
	return err
}

// permutationOf returns the order of an epoch.
func (j *Job) permutationOf(epoch uint32) *order.Permutation {
	j.mu.Lock()
	defer j.mu.Unlock()
	if o := j.orders[epoch]; o != nil {
		return o
	}
	if len(j.orders) >= 4 { // a job works on one or two epochs at a time
		clear(j.orders)
	}
	o := j.plan.Shuffle.permutationOf(j.Samples(), j.plan.Seed, epoch)
	j.orders[epoch] = o
	return o
}
