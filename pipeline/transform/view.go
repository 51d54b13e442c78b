package transform

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/resize"
)

// A view is as much geometry as one pass over the pixels can do: the region source of a picture is mirrored and resized
// to size to, window is cut out of that and flipped, and stands at place at of a canvas.
type view struct {
	source image.Rectangle
	mirror resize.Flips
	to     image.Point
	method resize.Method
	window image.Rectangle
	flip   resize.Flips
	canvas image.Point
	at     image.Point
	fill   [3]byte // of the canvas around the window
}

// wholeView is a picture as it is.
func wholeView(size image.Point) view {
	all := image.Rectangle{Max: size}
	return view{source: all, to: size, window: all, canvas: size}
}

// cropTo cuts r out of the canvas, with fill outside of it. It returns false when it needs a pass of its own: where
// there is padding of another colour.
func (v *view) cropTo(r image.Rectangle, fill [3]byte) bool {
	if !r.In(image.Rectangle{Max: v.canvas}) {
		if v.fill != fill && v.canvas != v.window.Size() {
			return false
		}
		v.fill = fill
	}
	place := v.window.Sub(v.window.Min).Add(v.at)
	seen := place.Intersect(r)
	left, top := seen.Min.X-place.Min.X, seen.Min.Y-place.Min.Y
	if v.flip.X {
		left = place.Max.X - seen.Max.X
	}
	if v.flip.Y {
		top = place.Max.Y - seen.Max.Y
	}
	v.window = image.Rectangle{Max: seen.Size()}.Add(v.window.Min).Add(image.Pt(left, top))
	v.at, v.canvas = seen.Min.Sub(r.Min), r.Size()
	if seen.Empty() {
		v.window, v.at = image.Rectangle{}, image.Point{}
	}
	return true
}

func (v *view) flipX() {
	v.flip.X = !v.flip.X
	v.at.X = v.canvas.X - v.at.X - v.window.Dx()
}

func (v *view) flipY() {
	v.flip.Y = !v.flip.Y
	v.at.Y = v.canvas.Y - v.at.Y - v.window.Dy()
}

// resizeTo returns false when it needs a pass of its own: after another resize, or when padding would be resized too.
func (v *view) resizeTo(to image.Point, m resize.Method) bool {
	if v.to != v.source.Size() || v.canvas != v.window.Size() {
		return false
	}
	*v = view{
		source: v.window, mirror: v.flip,
		to: to, method: m, window: image.Rectangle{Max: to}, canvas: to,
	}
	return true
}
