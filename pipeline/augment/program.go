package augment

import (
	"fmt"
	"image"
)

// program is what a chain does to one sample: views, each of the picture that the one before made.
type program struct {
	views     []view
	maxPixels int
}

func (p *program) begin(size image.Point) { p.views = append(p.views[:0], whole(size)) }

// last is the view that grows.
func (p *program) last() *view { return &p.views[len(p.views)-1] }

// size is that of the picture so far.
func (p *program) size() image.Point { return p.last().canvas }

func (p *program) crop(r image.Rectangle) error {
	if err := p.check(r.Size()); err != nil {
		return err
	}
	p.last().crop(r)
	return nil
}

func (p *program) resize(to image.Point) error {
	if err := p.check(to); err != nil {
		return err
	}
	if to == p.size() {
		return nil
	}
	if !p.last().resize(to) {
		if from := p.size(); from.X*from.Y > maxHeld {
			return fmt.Errorf("a picture of %d×%d pixels would be resized once more, but the limit for that is %d pixels", from.X, from.Y, maxHeld)
		}
		p.views = append(p.views, whole(p.size()))
		p.last().resize(to)
	}
	return nil
}

// maxHeld is the largest picture that is held in memory between two passes, in pixels: 200 MB for each worker, far beyond any real plan.
const maxHeld = 1 << 26

func (p *program) flipX() { p.last().flipX() }
func (p *program) flipY() { p.last().flipY() }

// check refuses sizes, whether or not a picture of that size would ever be held in memory.
func (p *program) check(size image.Point) error {
	limit := ""
	switch {
	case size.X < 1 || size.Y < 1:
		limit = "which is empty"
	case size.X > MaxSide || size.Y > MaxSide:
		limit = fmt.Sprintf("but a side has at most %d", MaxSide)
	case uint64(size.X)*uint64(size.Y) > uint64(p.maxPixels):
		limit = fmt.Sprintf("but the limit is %d pixels", p.maxPixels)
	default:
		return nil
	}
	from := p.size()
	return fmt.Errorf("a picture of %d×%d pixels would become one of %d×%d, %s", from.X, from.Y, size.X, size.Y, limit)
}
