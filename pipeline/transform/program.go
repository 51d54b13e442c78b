package transform

import (
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/raster"
	"github.com/feedwater-io/feedwater/pipeline/resize"
)

// program is what a chain does to one sample: passes, each over the picture that the one before made. The first is a
// view.
type program struct {
	passes    []pass
	maxPixels int
	work      int64  // steps that the effects take at most
	boxes     []Box  // to be erased in the end
	policy    []byte // that CTAugment draws by; see Chain.CheckPolicy

	oversize bool // a picture beyond the limits was met
	// large says why the picture so far must not be made, nil where it may: it may be cut to one that is.
	large *OpError
}

// A pass is one walk over pixels: a view, or, if it has one, an effect.
type pass struct {
	view   view
	effect raster.Effect
}

// outputSize is that of the picture that the pass makes.
func (p *pass) outputSize() image.Point { return p.view.canvas }

// writesAnother reports whether the pass writes another picture than it reads.
func (p *pass) writesAnother() bool { return p.effect.InPlace == nil }

func (p *program) beginSample(size image.Point) {
	p.passes, p.boxes, p.work = append(p.passes[:0], pass{view: wholeView(size)}), p.boxes[:0], 0
	p.large, p.oversize = nil, false
}

// currentSize is that of the picture so far.
func (p *program) currentSize() image.Point { return p.passes[len(p.passes)-1].outputSize() }

// openView is the view that grows: the last pass, or a new one behind an effect.
func (p *program) openView() (*view, error) {
	if last := &p.passes[len(p.passes)-1]; last.effect.IsNone() {
		return &last.view, nil
	}
	return p.nextView()
}

// nextView begins another view.
func (p *program) nextView() (*view, error) {
	size := p.currentSize()
	if p.large != nil && size.X*size.Y > maxHeld {
		return nil, p.large
	}
	if p.large = nil; size.X*size.Y > maxHeld { // a view reads pictures of any sides
		return nil, fmt.Errorf("a picture of %d×%d pixels would be held between two passes, but the limit for that is %d pixels", size.X, size.Y, maxHeld)
	}
	p.passes = append(p.passes, pass{view: wholeView(size)})
	return &p.passes[len(p.passes)-1].view, nil
}

// maxHeld is the largest picture that is held in memory between two passes, in pixels: 200 MB for each worker, far
// beyond any real plan.
const maxHeld = 1 << 26

// addCrop cuts r out of the picture, with zeros outside of it.
func (p *program) addCrop(r image.Rectangle) error { return p.addPadding(r, [3]byte{}) }

// addPadding is crop with another colour.
func (p *program) addPadding(r image.Rectangle, fill [3]byte) error {
	from := p.currentSize()
	if err := p.allowSize(r.Size()); err != nil {
		return err
	}
	v, err := p.openView()
	if err == nil && !v.cropTo(r, fill) {
		if v, err = p.nextView(); err == nil {
			v.cropTo(r, fill)
		}
	}
	p.noteSize(from, err)
	return err
}

func (p *program) addResize(to image.Point, m resize.Method) error {
	from := p.currentSize()
	if err := p.allowSize(to); err != nil || to == from {
		return err
	}
	v, err := p.openView()
	if err == nil && !v.resizeTo(to, m) {
		if v, err = p.nextView(); err == nil {
			v.resizeTo(to, m)
		}
	}
	p.noteSize(from, err)
	return err
}

func (p *program) addFlipX() error {
	v, err := p.openView()
	if err == nil {
		v.flipX()
	}
	return err
}

func (p *program) addFlipY() error {
	v, err := p.openView()
	if err == nil {
		v.flipY()
	}
	return err
}

// addEffect adds an effect. size is that of the picture it makes.
func (p *program) addEffect(e raster.Effect, size image.Point) error {
	if p.large != nil {
		return p.large
	}
	if err := p.allowSize(size); err != nil {
		return err
	}
	if !p.fitsLimits(size) {
		return p.tooLarge(p.currentSize(), size)
	}
	if from := p.currentSize(); max(from.X*from.Y, size.X*size.Y) > maxHeld {
		return fmt.Errorf("a picture of %d×%d pixels would be held in memory, but the limit for that is %d pixels", from.X, from.Y, maxHeld)
	}
	if err := p.spendWork(size, e.Steps+raster.UsualSteps); err != nil {
		return err
	}
	p.passes = append(p.passes, pass{view{canvas: size}, e})
	return nil
}

// maxWork is the most steps that the effects of a sample may take: minutes of a core. The worst picture decides, not
// the one at hand. ElasticTransform with sigma 5 passes at maxHeld pixels, GaussianBlur with 23 taps too.
const maxWork int64 = 1 << 39

// spendWork adds an effect's steps for each pixel.
func (p *program) spendWork(size image.Point, steps int) error {
	n := int64(size.X) * int64(size.Y)
	if p.work += n * int64(steps); p.work > maxWork {
		return fmt.Errorf("a picture of %d×%d pixels, each of up to %d steps, would make a sample of %d steps, but the limit is %d",
			size.X, size.Y, steps, p.work, maxWork)
	}
	return nil
}

// allowSize refuses sizes that not even a part can be made of.
func (p *program) allowSize(size image.Point) error {
	switch {
	case size.X < 1 || size.Y < 1:
		return becomeError(p.currentSize(), size, "which is empty")
	case p.fitsLimits(size):
		return nil
	}
	p.oversize = true
	return p.allowOversize(size)
}

// fitsLimits tells whether a picture of that size is made as a whole.
func (p *program) fitsLimits(size image.Point) bool {
	return size.X <= MaxSide && size.Y <= MaxSide && uint64(size.X)*uint64(size.Y) <= uint64(p.maxPixels)
}

// noteSize keeps in mind whether the picture so far, which was made of one of size from, may be made.
func (p *program) noteSize(from image.Point, failed error) {
	if failed != nil {
		return
	}
	p.large = nil
	if size := p.currentSize(); !p.fitsLimits(size) {
		p.large = &OpError{Cause: p.tooLarge(from, size)} // its op is named when that has drawn
	}
}

func becomeError(from, size image.Point, limit string) error {
	return fmt.Errorf("a picture of %d×%d pixels would become one of %d×%d, %s", from.X, from.Y, size.X, size.Y, limit)
}

// A Box is a rectangle of the result: i, its top, j, its left side, its height and its width, as torchvision's
// RandomErasing names them, and two words for the noise that fills it, the first of which is 0 where a value does.
// Without height there is none.
type Box [6]int

// What becomes of pictures beyond the limits, which program.fits tells. This is a unit of its own, docs/revisions.md:
// jobs that meet no such picture go on with builds that treat them otherwise.

// maxWhole is the longest side of a picture that is never made as a whole, but cut to one that is: that of 1×65,500
// pixels, say, of which a crop of the 256 times as large one is asked for.
const maxWhole = 1 << 24

// allowOversize refuses sizes beyond the limits that not even a part can be made of.
func (p *program) allowOversize(size image.Point) error {
	if size.X > maxWhole || size.Y > maxWhole {
		return becomeError(p.currentSize(), size, fmt.Sprintf("but a side has at most %d, whatever is cut out of it", maxWhole))
	}
	return nil
}

// tooLarge says why a picture beyond the limits is not made of one of size from.
func (p *program) tooLarge(from, size image.Point) error {
	limit := fmt.Sprintf("but the limit is %d pixels", p.maxPixels)
	if size.X > MaxSide || size.Y > MaxSide {
		limit = fmt.Sprintf("but a side has at most %d", MaxSide)
	}
	return becomeError(from, size, limit)
}
