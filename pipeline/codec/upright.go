package codec

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/codec/exif"
	"github.com/feedwater-io/feedwater/pipeline/codec/internal/strip"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// upright turns a picture as its EXIF data says. Its memory is that of the region.
type upright struct {
	orientation int         // as package exif has it; 1 and 0: as it is
	stored      image.Point // the size before it is turned
	part        pixel.Image // the region before it is turned
	row         int         // of part, that comes next
	rows        strip.Writer
}

// ParseUpright is Parse for a picture that is turned as its EXIF data says: the size it returns and the regions that
// Decode takes are those of the turned one.
func (d *Decoder) ParseUpright(src []byte, l Limits) (w, h int, err error) {
	if w, h, err = d.Parse(src, l); err != nil {
		return 0, 0, err
	}
	orientation, err := exif.Orientation(src)
	if err != nil {
		d.current = nil
		return 0, 0, err
	}
	d.upright.orientation = orientation
	d.upright.stored = image.Pt(w, h)
	if d.upright.swapped() {
		w, h = h, w
	}
	return w, h, nil
}

// swapped says whether rows become columns.
func (u *upright) swapped() bool { return u.orientation >= 5 }

// source returns the stored pixel that is seen at p.
func (u *upright) source(p image.Point) image.Point {
	if u.swapped() {
		p.X, p.Y = p.Y, p.X
	}
	switch u.orientation {
	case 2, 3, 7, 8:
		p.X = u.stored.X - 1 - p.X
	}
	switch u.orientation {
	case 3, 4, 6, 7:
		p.Y = u.stored.Y - 1 - p.Y
	}
	return p
}

// decode gives region r of the turned picture.
func (u *upright) decode(f format, r image.Rectangle, sink pixel.Sink) error {
	first, last := u.source(r.Min), u.source(r.Max.Sub(image.Pt(1, 1)))
	from := image.Rectangle{Min: first, Max: last}.Canon()
	from.Max = from.Max.Add(image.Pt(1, 1))
	u.part.Reset(from.Dx(), from.Dy())
	defer func() { u.part.Pix = strip.Keep(u.part.Pix) }()
	u.row = 0
	if err := f.Decode(from, u); err != nil {
		return err
	}
	u.rows.Begin(r.Dx(), sink)
	// A step to the right, in bytes of part.
	step := u.at(from, u.source(image.Pt(1, 0))) - u.at(from, u.source(image.Point{}))
	for y := r.Min.Y; y < r.Max.Y; y++ {
		dst := u.rows.Row()
		at := u.at(from, u.source(image.Pt(r.Min.X, y)))
		for i := range r.Dx() {
			copy(dst[3*i:3*i+3], u.part.Pix[at+i*step:])
		}
	}
	u.rows.Flush()
	return nil
}

// at is where a stored pixel lies in part, which begins at from.
func (u *upright) at(from image.Rectangle, p image.Point) int {
	return (p.Y-from.Min.Y)*u.part.Stride + 3*(p.X-from.Min.X)
}

// Rows takes the stored rows.
func (u *upright) Rows(pix []byte, stride, n int) {
	for y := range n {
		copy(u.part.Pix[u.row*u.part.Stride:][:3*u.part.W], pix[y*stride:])
		u.row++
	}
}
