// Package resize resizes pictures while their rows stream in, by all of torchvision's filters, in Pillow's arithmetic
// or torch's, to the last bit. It knows no plan and no draws, and starts no goroutine.
package resize

import (
	"image"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// Reference names the Pillow whose pixels are made.
type Reference string

// The references. Pillow 13 runs the vertical pass first where a picture shrinks much more in height than in width;
// before, the horizontal pass always came first. The passes meet in 8 bits, so the order shows.
const (
	Pillow13 Reference = "pillow-13"
	Pillow12 Reference = "pillow-12"
)

// verticalFirst is the rule for a picture of size from that is resized to size to.
func (r Reference) verticalFirst(from, to image.Point) bool {
	return r != Pillow12 && to.Y < from.Y && from.Y-to.Y > 2*(from.X-to.X)
}

// Flips are reversals of the two axes.
type Flips struct{ X, Y bool }

// A Window is what a Resampler makes: a picture of size From is mirrored, resized to size To, cut to Rect and flipped.
type Window struct {
	From, To     image.Point
	Rect         image.Rectangle
	Mirror, Flip Flips
	Method       Method
}

// Resampler resizes a picture while its rows stream in, and keeps no more of them than the filter spans. The bytes are
// those of Pillow's Image.resize of the whole picture, or torch's interpolate. It is a pixel.Sink, starts no goroutine
// and is not safe for concurrent use; once its buffers have grown it allocates nothing.
type Resampler struct {
	reference Reference
	across    *kernel.Horizontal
	down      *kernel.Vertical

	x, y   axis
	passes passes
	dst    []byte
	stride int
	fed    int // rows taken
	next   int // rows made, in the order of y

	wait rowWindow // rows that wait for the vertical pass
	made rowWindow // rows that the vertical pass made and the horizontal one has not seen
}

type passes int

const (
	atMostHorizontal passes = iota
	horizontalVertical
	verticalHorizontal // the horizontal pass may be a copy
)

// NewResampler returns a Resampler. level is one of kernel.Levels.
func NewResampler(level string, reference Reference) *Resampler {
	return &Resampler{
		reference: reference,
		across:    kernel.NewHorizontal(level), down: kernel.NewVertical(level),
		x: axis{vector: kernel.Vector(level)}, y: axis{vector: kernel.Vector(level)},
	}
}

// Begin starts a picture. Its result goes to dst, row y at dst[y*stride:]; nothing between the rows is written. w.Rect
// must lie inside w.To and not be empty, and dst must have room for it.
func (r *Resampler) Begin(w Window, dst []byte, stride int) {
	r.x.planOutputs(w.Method, w.From.X, w.To.X, w.Rect.Min.X, w.Rect.Max.X, w.Mirror.X, w.Flip.X)
	r.y.planOutputs(w.Method, w.From.Y, w.To.Y, w.Rect.Min.Y, w.Rect.Max.Y, w.Mirror.Y, w.Flip.Y)
	r.dst, r.stride, r.fed, r.next = dst[:(r.y.n-1)*stride+3*r.x.n], stride, 0, 0
	switch {
	case !r.y.resized:
		r.passes = atMostHorizontal
	case r.x.resized && !r.downFirst(w):
		r.passes = horizontalVertical
	default:
		r.passes = verticalHorizontal
	}
	if r.x.resized {
		r.across.Set(&r.x.taps, r.x.reverse, r.y.reverse && r.passes != horizontalVertical)
	}
	r.made.count = 0
	if r.y.resized {
		r.down.Set(&r.y.taps)
		r.makeRoom()
	}
}

// downFirst tells whether the vertical pass comes first. With nearest ones the order does not show, but the rows that
// nobody takes need no horizontal pass.
func (r *Resampler) downFirst(w Window) bool {
	return w.Method.IsNearest() || !w.Method.Tensor && r.reference.verticalFirst(w.From, w.To)
}

// Rows beyond the longest sum: enough to run a pass on all rows that a decoder hands over at a time.
const spareRows = 24

func (r *Resampler) makeRoom() {
	longest := r.y.longest
	if r.passes == horizontalVertical {
		r.wait.resetTo(3*r.x.n, longest+spareRows, 0)
		return
	}
	size := 3 * (r.x.hi - r.x.lo)
	r.wait.resetTo(size, longest, 0)
	r.made.resetTo(size, spareRows, kernel.HorizontalRead)
}

// Shrink gives rows back if they take more than so many bytes, as those of a huge picture do, and lets go of the
// result.
func (r *Resampler) Shrink(most int) {
	if cap(r.wait.pix) > most { // made is always small
		r.wait.pix = nil
	}
	r.dst = nil
}

// Need returns the part of the source picture that must be fed.
func (r *Resampler) Need() image.Rectangle { return image.Rect(r.x.lo, r.y.lo, r.x.hi, r.y.hi) }

// Missing returns how many rows of Need have not come yet.
func (r *Resampler) Missing() int { return r.y.hi - r.y.lo - r.fed }

// Rows takes the next n rows of Need. Rows beyond it are ignored.
func (r *Resampler) Rows(pix []byte, stride, n int) {
	n = min(n, r.Missing())
	if n <= 0 {
		return
	}
	switch r.passes {
	case atMostHorizontal:
		r.finishRows(pix, stride, n)
	case horizontalVertical:
		r.horizontalFirst(pix, stride, n)
	case verticalHorizontal:
		r.verticalFirst(pix, stride, n)
		r.flushRows()
	}
	r.fed += n
}

// horizontalFirst runs the horizontal pass on the rows as they come, and makes each result as soon as its rows are
// there.
func (r *Resampler) horizontalFirst(pix []byte, stride, n int) {
	for done := 0; done < n; {
		if r.wait.freeRows() < n-done {
			begin, _ := r.nextSpan()
			r.wait.dropBefore(begin)
		}
		m := min(n-done, r.wait.freeRows())
		r.across.Rows(r.wait.rowsFrom(r.wait.endRow()), r.wait.size, pix[done*stride:], stride, m)
		r.wait.count += m
		done += m
		for begin, end := r.nextSpan(); end <= r.wait.endRow(); begin, end = r.nextSpan() {
			r.down.Row(r.next, r.targetRows(1)[:3*r.x.n], r.wait.rowsFrom(begin), r.wait.size)
			r.next++
		}
	}
}

// verticalFirst makes rows straight from pix where that holds all they need. Rows of pix that a later one needs too
// wait: on entry and on return, wait has all rows of the next result that have come.
func (r *Resampler) verticalFirst(pix []byte, stride, n int) {
	have := r.fed + n
	begin, end := r.nextSpan()
	for ; begin < r.fed; begin, end = r.nextSpan() {
		r.gatherRows(begin, min(end, have), pix, stride)
		if end > have {
			return
		}
		r.makeVerticalRow(r.wait.rowsFrom(begin), r.wait.size)
	}
	for ; end <= have; begin, end = r.nextSpan() {
		r.makeVerticalRow(pix[(begin-r.fed)*stride:], stride)
	}
	if begin < have {
		r.wait.base, r.wait.count = begin, 0
		r.gatherRows(begin, have, pix, stride)
	}
}

// gatherRows makes wait hold the rows begin … end−1; pix begins at row fed.
func (r *Resampler) gatherRows(begin, end int, pix []byte, stride int) {
	if n := end - r.wait.endRow(); n > 0 {
		if n > r.wait.freeRows() {
			r.wait.dropBefore(begin)
		}
		r.wait.addRows(pix[(r.wait.endRow()-r.fed)*stride:], stride, n)
	}
}

// nextSpan returns which rows the next vertical result needs; both are beyond all rows when there is none.
func (r *Resampler) nextSpan() (begin, end int) {
	i := r.next + r.made.count
	if i == r.y.n {
		return math.MaxInt, math.MaxInt
	}
	begin = int(r.y.taps.First[i])
	return begin, begin + int(r.y.taps.Count[i])
}

// makeVerticalRow makes one row for the horizontal pass.
func (r *Resampler) makeVerticalRow(src []byte, stride int) {
	m := &r.made
	r.down.Row(r.next+m.count, m.rowsFrom(m.endRow())[:m.size], src, stride)
	if m.count++; m.freeRows() == 0 {
		r.flushRows()
	}
}

// flushRows finishes the rows that wait for the horizontal pass.
func (r *Resampler) flushRows() {
	if n := r.made.count; n > 0 {
		r.made.count = 0
		r.finishRows(r.made.pix, r.made.size, n)
	}
}

// finishRows makes the next n rows of the result by the horizontal pass, or by copying where the width stays.
func (r *Resampler) finishRows(src []byte, stride, n int) {
	dst := r.targetRows(n)
	if r.next += n; r.x.resized {
		r.across.Rows(dst, r.stride, src, stride, n)
		return
	}
	for y := range n {
		to := y
		if r.y.reverse {
			to = n - 1 - y
		}
		copyRow(dst[to*r.stride:][:3*r.x.n], src[y*stride:], r.x.reverse)
	}
}

// targetRows is the memory of the next n rows of the result; when rows are reversed, the last of them is the first
// there.
func (r *Resampler) targetRows(n int) []byte {
	y := r.next
	if r.y.reverse {
		y = r.y.n - r.next - n
	}
	return r.dst[y*r.stride:]
}

func copyRow(dst, src []byte, reverse bool) {
	if !reverse {
		copy(dst, src)
		return
	}
	for i, j := 0, len(dst)-3; j >= 0; i, j = i+3, j-3 {
		*(*[3]byte)(dst[j:]) = *(*[3]byte)(src[i:])
	}
}
