package transform

import (
	"errors"
	"fmt"
	"image"
	"slices"
	"sync/atomic"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
	"github.com/feedwater-io/feedwater/pipeline/raster"
	"github.com/feedwater-io/feedwater/pipeline/resize"
)

// A Source is an encoded or a decoded picture.
type Source interface {
	// Decode hands the rows of region r, which is not empty and lies inside the picture, to sink from top to bottom.
	Decode(r image.Rectangle, sink pixel.Sink) error
}

// Options of a Runner. All but Level decide pixels, so they come from the plan.
type Options struct {
	// Seed of all draws, and Path, which stands before those of the ops: another one draws independently.
	Seed uint64
	Path string
	// Reference whose pixels are made; empty: Pillow13.
	Reference resize.Reference
	// MaxPixels of any picture that an op makes; 0: 178,956,970, where Pillow calls a file a bomb.
	MaxPixels int
	// Level of the kernels; empty: the best one of this processor, or the one that FEEDWATER_KERNELS names.
	Level string
	// Record has Begin keep what it draws, for Recorded. It decides no pixels.
	Record bool
}

func (o Options) withDefaults() (Options, error) {
	if o.Reference == "" {
		o.Reference = resize.Pillow13
	}
	if o.Reference != resize.Pillow13 && o.Reference != resize.Pillow12 {
		return o, fmt.Errorf("reference: %q is not offered; nearest: %s", string(o.Reference), resize.Pillow13)
	}
	if o.MaxPixels == 0 {
		o.MaxPixels = 178956970
	}
	if o.Level == "" {
		level, err := kernel.Best()
		o.Level = level
		return o, err
	}
	if !slices.Contains(kernel.Levels(), o.Level) {
		return o, fmt.Errorf("level: %q; this processor can run %v", o.Level, kernel.Levels())
	}
	return o, nil
}

// ErrStopped ends a RunUnless.
var ErrStopped = errors.New("transform: the sample was given up")

// Runner runs a chain on one sample after the other, in memory of its own. It is not safe for concurrent use. After the
// first samples it allocates nothing, Draws and Record apart.
type Runner struct {
	chain     Chain
	keys      []keyring // of the ops
	program   program
	resampler *resize.Resampler
	scratch   [2]pixel.Image // pictures between passes
	result    pixel.Image
	workspace raster.Workspace
	recorded  []Draw // one for each op; nil: nobody asks
}

// NewRunner makes a Runner for one worker.
func NewRunner(c Chain, o Options) (*Runner, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Runner{chain: c, program: program{maxPixels: o.MaxPixels}, resampler: resize.NewResampler(o.Level, o.Reference), workspace: raster.Workspace{Level: o.Level}}
	r.keys = c.makeKeys(o.Seed, o.Path)
	if o.Record {
		r.recorded = make([]Draw, len(c.steps))
	}
	return r, nil
}

// Follow has CTAugment draw by a policy from now on; see Chain.CheckPolicy. It is held until the next one.
func (r *Runner) Follow(policy []byte) { r.program.policy = policy }

// Begin draws the parameters of sample s, a picture of w×h ≥ 1×1 pixels, and returns the size of the result. An error
// is an *OpError.
func (r *Runner) Begin(w, h int, s order.Sample) (outW, outH int, err error) {
	if err := r.drawSample(w, h, s, r.recorded); err != nil {
		return 0, 0, err
	}
	size := r.program.currentSize()
	return size.X, size.Y, nil
}

// Recorded is what every op drew in the last Begin, with Options.Record. It is valid until the next Begin.
func (r *Runner) Recorded() []Draw { return r.recorded }

// Oversize tells whether a picture beyond the limits was asked for when Begin drew, whatever came of it: as a step on
// the way to a smaller one, too.
func (r *Runner) Oversize() bool { return r.program.oversize }

// Region is the part of the picture that Run will need after Begin, or somewhat more than that.
func (r *Runner) Region() image.Rectangle {
	v := &r.program.passes[0].view
	if v.to != v.source.Size() && !v.window.Empty() {
		return v.source
	}
	return v.window.Add(v.source.Min)
}

// Draws returns what every op draws for sample s, a picture of w×h pixels. It decodes nothing. What was begun is
// forgotten.
func (r *Runner) Draws(w, h int, s order.Sample) ([]Draw, error) {
	draws := make([]Draw, len(r.chain.steps))
	err := r.drawSample(w, h, s, draws)
	r.program.passes = r.program.passes[:0]
	return draws, err
}

func (r *Runner) drawSample(w, h int, s order.Sample, draws []Draw) error {
	r.program.beginSample(image.Pt(w, h))
	err := r.chain.drawSample(r.keys, s, &r.program, draws)
	if err == nil && r.program.large != nil {
		err = r.program.large
	}
	if err != nil {
		r.program.passes = r.program.passes[:0]
	}
	return err
}

// Run makes the result of what Begin drew: rows of 8-bit RGB at dst[y*stride:], nothing between them. src must be the
// picture whose size Begin was told. An error is src's own, or says that dst or src breaks this contract.
func (r *Runner) Run(src Source, dst []byte, stride int) error {
	return r.RunUnless(nil, src, dst, stride)
}

// RunUnless is Run that leaves off once cancelled is set: between passes, and within those of ops that can take long;
// src is not interrupted. The error is ErrStopped then.
func (r *Runner) RunUnless(cancelled *atomic.Bool, src Source, dst []byte, stride int) error {
	if len(r.program.passes) == 0 {
		return errors.New("transform: nothing was begun")
	}
	size := r.program.currentSize()
	if stride < 3*size.X || len(dst) < (size.Y-1)*stride+3*size.X {
		return fmt.Errorf("transform: %d bytes in rows of %d cannot hold %d×%d pixels", len(dst), stride, size.X, size.Y)
	}
	defer r.shrinkBuffers()
	r.workspace.Cancelled = cancelled
	r.result = pixel.Image{Pix: dst, W: size.X, H: size.Y, Stride: stride}
	result := &r.result
	var now *pixel.Image // what the passes so far made
	for i := range r.program.passes {
		to, err := r.runPass(i, src, now, result)
		switch {
		case err != nil:
			return err
		case r.workspace.IsStopped():
			return ErrStopped
		}
		now, src = to, (*picture)(to)
	}
	return nil
}

// runPass makes pass i of what the ones before made, and returns where it did.
func (r *Runner) runPass(i int, src Source, now, result *pixel.Image) (*pixel.Image, error) {
	p := &r.program.passes[i]
	if !p.writesAnother() {
		p.effect.InPlace(&p.effect, &r.workspace, now)
		return now, nil
	}
	to := r.targetImage(i, now, result)
	if p.effect.Across != nil {
		p.effect.Across(&p.effect, &r.workspace, to, now)
		return to, nil
	}
	return to, r.renderView(p.view, src, to.Pix, to.Stride)
}

// targetImage is where pass i, which moves, writes: to the result if no other moves after it.
func (r *Runner) targetImage(i int, now, result *pixel.Image) *pixel.Image {
	p := &r.program.passes[i]
	if !slices.ContainsFunc(r.program.passes[i+1:], func(q pass) bool { return q.writesAnother() }) {
		return result
	}
	to := &r.scratch[0]
	if now == to {
		to = &r.scratch[1]
	}
	to.Reset(p.outputSize().X, p.outputSize().Y)
	return to
}

// keptBytes is the most that one of a Runner's buffers keeps for the next picture.
const keptBytes = 32 << 20

// shrinkBuffers gives memory back that only a huge picture needs, and lets go of the result.
func (r *Runner) shrinkBuffers() {
	for i := range r.scratch {
		if cap(r.scratch[i].Pix) > keptBytes {
			r.scratch[i] = pixel.Image{}
		}
	}
	r.workspace.Shrink(keptBytes)
	r.resampler.Shrink(keptBytes)
	r.result, r.workspace.Cancelled = pixel.Image{}, nil
}

// renderView makes one view.
func (r *Runner) renderView(v view, src Source, dst []byte, stride int) error {
	v.blankCanvas(dst, stride)
	if v.window.Empty() {
		return nil
	}
	r.resampler.Begin(resize.Window{From: v.source.Size(), To: v.to, Rect: v.window, Mirror: v.mirror, Flip: v.flip, Method: v.method},
		dst[v.at.Y*stride+3*v.at.X:], stride)
	if err := src.Decode(r.resampler.Need().Add(v.source.Min), r.resampler); err != nil {
		return err
	}
	if n := r.resampler.Missing(); n > 0 {
		return fmt.Errorf("transform: the source left out %d rows", n)
	}
	return nil
}

// blankCanvas paints the canvas around the window. Its first row is painted; what the others need of it is copied.
func (v *view) blankCanvas(dst []byte, stride int) {
	w, place := 3*v.canvas.X, v.window.Sub(v.window.Min).Add(v.at)
	if place.Eq(image.Rectangle{Max: v.canvas}) {
		return
	}
	first := dst[:w]
	paint(first, v.fill)
	for y := 1; y < v.canvas.Y; y++ {
		row := dst[y*stride:][:w]
		if y < place.Min.Y || y >= place.Max.Y {
			copy(row, first)
			continue
		}
		copy(row[:3*place.Min.X], first)
		copy(row[3*place.Max.X:], first)
	}
}

// paint fills whole pixels.
func paint(row []byte, fill [3]byte) {
	if fill == [3]byte{} || len(row) == 0 {
		clear(row)
		return
	}
	copy(row, fill[:])
	for n := 3; n < len(row); n *= 2 {
		copy(row[n:], row[:n])
	}
}

// picture is an image as a Source.
type picture pixel.Image

func (p *picture) Decode(r image.Rectangle, sink pixel.Sink) error {
	sink.Rows(p.Pix[r.Min.Y*p.Stride+3*r.Min.X:], p.Stride, r.Dy())
	return nil
}

// Boxes are the rectangles of what Begin drew, Chain.Boxes of them. They are valid until the next Begin.
func (r *Runner) Boxes() []Box { return r.program.boxes }
