package transform

import (
	"fmt"
	"image"
)

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
