package pipeline

import (
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// decoder is what one core needs to make samples, all of it reused: having one is the right to use a core.
type decoder struct {
	level   string
	codec   *codec.Decoder
	runners []planRunners // the one that was used last first
	shared  sharedPicture
	whole   sharedPicture // whose memory is the pixel cache's
	stop    stoppable
	// maskCodec, numbered and wide are for masks, which are pictures of three equal channels on the way.
	maskCodec *codec.Decoder
	numbered  numberedSource
	wide      []byte
	pixels    []byte
	fileIndex
}

func newDecoder(level string) *decoder {
	return &decoder{level: level, codec: codec.NewDecoder(level)}
}

// maxRunners is how many plans' runners a decoder keeps. A runner holds no more than a few hundred kilobytes.
const maxRunners = 16

// planRunners are what makes the pictures of all jobs of one plan.
type planRunners struct {
	plan string // Job.Hash
	all  []renderer
}

// renderer is what makes one of a job's pictures, and the size of the one that was drawn last.
type renderer struct {
	*transform.Runner
	size
}

// runnersFor finds the runners of a job's plan, or makes them in place of those that were not used for longest.
func (d *decoder) runnersFor(j *Job) ([]renderer, error) {
	i := slices.IndexFunc(d.runners, func(e planRunners) bool { return e.plan == j.hash })
	if i < 0 {
		all, err := d.newRunners(j)
		if err != nil {
			return nil, err
		}
		if len(d.runners) < maxRunners {
			d.runners = append(d.runners, planRunners{})
		}
		i = len(d.runners) - 1
		d.runners[i] = planRunners{j.hash, all}
	}
	used := d.runners[i]
	copy(d.runners[1:i+1], d.runners[:i])
	d.runners[0] = used
	return used.all, nil
}

// newRunners makes the runners of a job's plan.
func (d *decoder) newRunners(j *Job) ([]renderer, error) {
	all := make([]renderer, len(j.pictures))
	for k := range all {
		r, err := transform.NewRunner(j.pictures[k].chain, transform.Options{
			Seed: j.plan.Seed, Path: j.pictures[k].path, Reference: j.plan.Reference, MaxPixels: int(j.plan.Limits.Pixels), Level: d.level,
			Record: j.plan.wantsField(drawsField) && !j.pictures[k].mask,
		})
		if err != nil {
			return nil, err
		}
		all[k].Runner = r
	}
	return all, nil
}

// releaseFiles lets go of the files at hand, and of memory that only a huge picture needs.
func (d *decoder) releaseFiles() {
	d.codec.Release()
	d.whole = sharedPicture{}
	if d.maskCodec != nil {
		d.maskCodec.Release()
	}
	for _, b := range []*[]byte{&d.pixels, &d.wide, &d.shared.image.Pix} {
		if cap(*b) > keptBytes {
			*b = nil
		}
	}
}

// beginSample looks at a file and draws the parameters of all pictures. It returns the size of the file's own picture
// too.
func (d *decoder) beginSample(j *Job, s order.Sample, policy []byte, k *worker) (all []renderer, from size, err error) {
	if all, err = d.runnersFor(j); err != nil {
		return nil, size{}, err
	}
	if err := j.checkFormat(d.codec, k.file); err != nil {
		return nil, size{}, err
	}
	d.useIndex(j, k)
	if from, err = d.parse(j, k); err != nil {
		return nil, size{}, err
	}
	d.countWithoutCopy(j, k)
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

// parse looks at the file that a worker has read, where its picture is not kept. It returns the picture's size.
func (d *decoder) parse(j *Job, k *worker) (from size, err error) {
	if p := k.pixels.found; p != nil {
		return size{p.Image.W, p.Image.H}, nil
	}
	return d.parseFile(k.file, j.plan.ApplyEXIF, j.plan.Limits)
}

// parseFile looks at a file, upright or as it lies. It returns the size of its picture.
func (d *decoder) parseFile(file []byte, upright bool, limits codec.Limits) (from size, err error) {
	parse := d.codec.Parse
	if upright {
		parse = d.codec.ParseUpright
	}
	from.w, from.h, err = parse(file, limits)
	return from, err
}

// size of a picture, in pixels.
type size struct{ w, h int }

// countBytes is what its pixels take.
func (s size) countBytes() int { return s.w * s.h * 3 }
