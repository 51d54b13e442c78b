package pipeline

import (
	"time"

	"github.com/feedwater-io/feedwater/pipeline/augment"
	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/order"
)

// work is a worker: it takes samples until the queue is closed. Reading files needs no core, so there are more workers than
// decoders; a worker that has read its file waits for a decoder.
func (p *Pipeline) work() {
	var file []byte
	for {
		w, first, n := p.queue.take()
		switch {
		case w == nil:
			return
		case w.cancelled.Load():
			w.fail(first, ErrCancelled)
		default:
			w.begin()
			file = w.sample(first, file)
		}
		w.finish(n)
		if cap(file) > keptBytes {
			file = nil
		}
	}
}

// keptBytes is the most that a worker keeps for the next file.
const keptBytes = 32 << 20

// decoder is what one core needs to make samples, all of it reused: having one is the right to use a core.
type decoder struct {
	level   string
	codec   *codec.Decoder
	runners map[*Job]*augment.Runner
	pixels  []byte
	indexing
}

func newDecoder(level string) *decoder {
	return &decoder{level: level, codec: codec.NewDecoder(level), runners: map[*Job]*augment.Runner{}}
}

// maxRunners is how many jobs' runners a decoder keeps. A runner holds no more than a few hundred kilobytes.
const maxRunners = 8

func (d *decoder) runner(j *Job) (*augment.Runner, error) {
	if r := d.runners[j]; r != nil {
		return r, nil
	}
	if len(d.runners) >= maxRunners {
		clear(d.runners)
	}
	r, err := augment.NewRunner(j.plan.Transforms, augment.Options{
		Seed: j.plan.Seed, Reference: j.plan.Reference, MaxPixels: int(j.plan.Limits.Pixels), Level: d.level,
	})
	if err == nil {
		d.runners[j] = r
	}
	return r, err
}

// begin looks at a file and draws its parameters. It returns the size of the file's picture and of the result.
func (d *decoder) begin(j *Job, s order.Sample, policy, file []byte) (r *augment.Runner, picture, result size, err error) {
	if r, err = d.runner(j); err != nil {
		return nil, size{}, size{}, err
	}
	r.Follow(policy)
	parse := d.codec.Parse
	if j.plan.ApplyEXIF {
		parse = d.codec.ParseUpright
	}
	d.lookUp(j, uint64(s.Index), file)
	if picture.w, picture.h, err = parse(file, j.plan.Limits); err != nil {
		return nil, size{}, size{}, err
	}
	result.w, result.h, err = r.Begin(picture.w, picture.h, s)
	return r, picture, result, err
}

// size of a picture, in pixels.
type size struct{ w, h int }

func (s size) bytes() int { return s.w * s.h * 3 }

// borrow waits for a decoder. The time until it is given back counts as spent on the want.
func (w *Want) borrow() (d *decoder, giveBack func()) {
	p := w.job.p
	d = <-p.decoders
	begun := time.Now()
	return d, func() {
		spent := time.Since(begun)
		if cap(d.pixels) > keptBytes {
			d.pixels = nil
		}
		p.decoders <- d
		w.busy.Add(int64(spent))
		p.spent(spent)
	}
}
