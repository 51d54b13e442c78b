package pipeline

import (
	"runtime"
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/imageindex"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/storage"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// worker takes samples until the queue is closed. Reading files needs no core, so there are more workers than decoders; a worker that has read
// its file waits for a decoder. One whose call storage does not give back is replaced by another: see storage.Owner, which it is.
type worker struct {
	p    *Pipeline
	file []byte // that was read last
	call storage.Call

	// What is read, or was last: the file of a sample of a snapshot, or what a store has of one.
	snapshot *dataset.Snapshot
	store    *imageindex.Cache
	index    int

	found  []byte // index of the file
	making bool   // it has none, and one is wanted

	// The sample at hand. places are the roots that it holds a place of; who reads on gives them back.
	want    *Want
	at      int
	places  []*storage.Root
	surplus bool // another worker was started in its place
	gone    bool // its sample was failed by GaveUp
}

// work is a worker's goroutine.
func (k *worker) work() {
	k.call.Owner = k
	for {
		w, first, n, places := k.p.queue.take()
		if w == nil {
			k.p.leave()
			return
		}
		k.want, k.at, k.places = w, first, places
		if w.cancelled.Load() {
			w.fail(first, ErrCancelled)
		} else {
			w.begin()
			w.sample(first, k)
		}
		k.leavePlaces()
		if k.gone {
			k.comeBack()
			return
		}
		w.finish(n)
		if k.surplus {
			k.p.leave()
			return
		}
		if cap(k.file) > keptBytes {
			k.file = nil
		}
	}
}

// keptBytes is the most that a worker or a decoder keeps in any one buffer for the next file.
const keptBytes = 32 << 20

// decoder is what one core needs to make samples, all of it reused: having one is the right to use a core.
type decoder struct {
	level   string
	codec   *codec.Decoder
	runners []equipment // the one that was used last first
	shared  shared
	stop    stoppable
	// maskCodec and wide are for masks, which are pictures of three equal channels on the way.
	maskCodec *codec.Decoder
	wide      []byte
	pixels    []byte
	indexing
}

func newDecoder(level string) *decoder {
	return &decoder{level: level, codec: codec.NewDecoder(level)}
}

// maxRunners is how many plans' runners a decoder keeps. A runner holds no more than a few hundred kilobytes.
const maxRunners = 16

// equipment is what makes the pictures of all jobs of one plan.
type equipment struct {
	plan string // Job.Hash
	all  []drawn
}

// drawn is what makes one of a job's pictures, and the size of the one that was drawn last.
type drawn struct {
	*transform.Runner
	size
}

// ready finds the runners of a job's plan, or makes them in place of those that were not used for longest.
func (d *decoder) ready(j *Job) ([]drawn, error) {
	i := slices.IndexFunc(d.runners, func(e equipment) bool { return e.plan == j.hash })
	if i < 0 {
		all, err := d.equip(j)
		if err != nil {
			return nil, err
		}
		if len(d.runners) < maxRunners {
			d.runners = append(d.runners, equipment{})
		}
		i = len(d.runners) - 1
		d.runners[i] = equipment{j.hash, all}
	}
	used := d.runners[i]
	copy(d.runners[1:i+1], d.runners[:i])
	d.runners[0] = used
	return used.all, nil
}

// equip makes the runners of a job's plan.
func (d *decoder) equip(j *Job) ([]drawn, error) {
	all := make([]drawn, len(j.pictures))
	for k := range all {
		r, err := transform.NewRunner(j.pictures[k].chain, transform.Options{
			Seed: j.plan.Seed, Path: j.pictures[k].path, Reference: j.plan.Reference, MaxPixels: int(j.plan.Limits.Pixels), Level: d.level,
		})
		if err != nil {
			return nil, err
		}
		all[k].Runner = r
	}
	return all, nil
}

// release lets go of the files at hand, and of memory that only a huge picture needs.
func (d *decoder) release() {
	d.codec.Release()
	if d.maskCodec != nil {
		d.maskCodec.Release()
	}
	for _, b := range []*[]byte{&d.pixels, &d.wide, &d.shared.image.Pix} {
		if cap(*b) > keptBytes {
			*b = nil
		}
	}
}

// begin looks at a file and draws the parameters of all pictures. It returns the size of the file's own picture too.
func (d *decoder) begin(j *Job, s order.Sample, policy []byte, k *worker) (all []drawn, from size, err error) {
	if all, err = d.ready(j); err != nil {
		return nil, size{}, err
	}
	if err := j.refusal(d.codec, k.file); err != nil {
		return nil, size{}, err
	}
	parse := d.codec.Parse
	if j.plan.ApplyEXIF {
		parse = d.codec.ParseUpright
	}
	d.useIndex(j, k)
	if from.w, from.h, err = parse(k.file, j.plan.Limits); err != nil {
		return nil, size{}, err
	}
	for i := range all {
		all[i].Follow(policy)
		all[i].w, all[i].h, err = all[i].Begin(from.w, from.h, s)
		if j.oversize != nil && all[i].Oversize() {
			err = j.oversize
		}
		if err != nil {
			return nil, size{}, err
		}
	}
	return all, from, nil
}

// size of a picture, in pixels.
type size struct{ w, h int }

func (s size) bytes() int { return s.w * s.h * 3 }

// borrow waits for a decoder. The time until it is given back counts as spent on the want.
func (w *Want) borrow() (d *decoder, giveBack func()) {
	p := w.job.p
	d = <-p.decoders
	runtime.Gosched() // workers wake each other, and would keep those who send and receive waiting for 10 ms at every step
	begun := time.Now()
	return d, func() {
		time.Sleep(p.options.SampleTime - time.Since(begun))
		d.release()
		spent := time.Since(begun)
		p.decoders <- d
		w.busy.Add(int64(spent))
		p.spent(spent)
	}
}
