package transform

import (
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/raster"
	"github.com/feedwater-io/feedwater/pipeline/resize"
)

// program is what a chain does to one sample: passes, each over the picture that the one before made. The first is a view.
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

// size is that of the picture that the pass makes.
func (p *pass) size() image.Point { return p.view.canvas }

// moves reports whether the pass writes another picture than it reads.
func (p *pass) moves() bool { return p.effect.InPlace == nil }

func (p *program) begin(size image.Point) {
	p.passes, p.boxes, p.work = append(p.passes[:0], pass{view: whole(size)}), p.boxes[:0], 0
	p.large, p.oversize = nil, false
}

// size is that of the picture so far.
func (p *program) size() image.Point { return p.passes[len(p.passes)-1].size() }

// open is the view that grows: the last pass, or a new one behind an effect.
func (p *program) open() (*view, error) {
	if last := &p.passes[len(p.passes)-1]; last.effect.IsNone() {
		return &last.view, nil
	}
	return p.next()
}

// next begins another view.
func (p *program) next() (*view, error) {
	size := p.size()
	if p.large != nil && size.X*size.Y > maxHeld {
		return nil, p.large
	}
	if p.large = nil; size.X*size.Y > maxHeld { // a view reads pictures of any sides
		return nil, fmt.Errorf("a picture of %d×%d pixels would be held between two passes, but the limit for that is %d pixels", size.X, size.Y, maxHeld)
	}
	p.passes = append(p.passes, pass{view: whole(size)})
	return &p.passes[len(p.passes)-1].view, nil
}

// maxHeld is the largest picture that is held in memory between two passes, in pixels: 200 MB for each worker, far beyond any real plan.
const maxHeld = 1 << 26

// crop cuts r out of the picture, with zeros outside of it.
func (p *program) crop(r image.Rectangle) error { return p.pad(r, [3]byte{}) }

// pad is crop with another colour.
func (p *program) pad(r image.Rectangle, fill [3]byte) error {
	from := p.size()
	if err := p.allow(r.Size()); err != nil {
		return err
	}
	v, err := p.open()
	if err == nil && !v.crop(r, fill) {
		if v, err = p.next(); err == nil {
			v.crop(r, fill)
		}
	}
	p.note(from, err)
	return err
}

func (p *program) resize(to image.Point, m resize.Method) error {
	from := p.size()
	if err := p.allow(to); err != nil || to == from {
		return err
	}
	v, err := p.open()
	if err == nil && !v.resize(to, m) {
		if v, err = p.next(); err == nil {
			v.resize(to, m)
		}
	}
	p.note(from, err)
	return err
}

func (p *program) flipX() error {
	v, err := p.open()
	if err == nil {
		v.flipX()
	}
	return err
}

func (p *program) flipY() error {
	v, err := p.open()
	if err == nil {
		v.flipY()
	}
	return err
}

// apply adds an effect. size is that of the picture it makes.
func (p *program) apply(e raster.Effect, size image.Point) error {
	if p.large != nil {
		return p.large
	}
	if err := p.allow(size); err != nil {
		return err
	}
	if !p.fits(size) {
		return p.tooLarge(p.size(), size)
	}
	if from := p.size(); max(from.X*from.Y, size.X*size.Y) > maxHeld {
		return fmt.Errorf("a picture of %d×%d pixels would be held in memory, but the limit for that is %d pixels", from.X, from.Y, maxHeld)
	}
	if err := p.spend(size, e.Steps+raster.UsualSteps); err != nil {
		return err
	}
	p.passes = append(p.passes, pass{view{canvas: size}, e})
	return nil
}

// maxWork is the most steps that the effects of a sample may take: minutes of a core. The worst picture decides, not the one at hand.
// ElasticTransform with sigma 5 passes at maxHeld pixels, GaussianBlur with 23 taps too.
const maxWork int64 = 1 << 39

// spend adds an effect's steps for each pixel.
func (p *program) spend(size image.Point, steps int) error {
	n := int64(size.X) * int64(size.Y)
	if p.work += n * int64(steps); p.work > maxWork {
		return fmt.Errorf("a picture of %d×%d pixels, each of up to %d steps, would make a sample of %d steps, but the limit is %d",
			size.X, size.Y, steps, p.work, maxWork)
	}
	return nil
}

// allow refuses sizes that not even a part can be made of.
func (p *program) allow(size image.Point) error {
	switch {
	case size.X < 1 || size.Y < 1:
		return become(p.size(), size, "which is empty")
	case p.fits(size):
		return nil
	}
	p.oversize = true
	return p.allowOversize(size)
}

// fits tells whether a picture of that size is made as a whole.
func (p *program) fits(size image.Point) bool {
	return size.X <= MaxSide && size.Y <= MaxSide && uint64(size.X)*uint64(size.Y) <= uint64(p.maxPixels)
}

// note keeps in mind whether the picture so far, which was made of one of size from, may be made.
func (p *program) note(from image.Point, failed error) {
	if failed != nil {
		return
	}
	p.large = nil
	if size := p.size(); !p.fits(size) {
		p.large = &OpError{Cause: p.tooLarge(from, size)} // its op is named when that has drawn
	}
}

func become(from, size image.Point, limit string) error {
	return fmt.Errorf("a picture of %d×%d pixels would become one of %d×%d, %s", from.X, from.Y, size.X, size.Y, limit)
}

// A Box is a rectangle of the result: i, its top, j, its left side, its height and its width, as torchvision's RandomErasing names them,
// and two words for the noise that fills it, the first of which is 0 where a value does. Without height there is none.
type Box [6]int
