package jpeg

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// output turns coefficients into RGB rows. It holds the samples of one MCU row of the region, and of each component the
// last row of the MCU row before where upsampling looks at the row above.
type output struct {
	kernels *kernel.JPEG
	frame   *frame
	space   space
	sink    pixel.Sink
	region  image.Rectangle
	mcus    image.Rectangle // that are transformed
	planes  [maxComponents]plane
	lag     int // rows at the end of an MCU row that need the next one
	next    int // the next row to give
	rows    []byte
	stride  int
}

// rowsPerCall is how many rows the sink gets at most: few enough for the first-level cache.
const rowsPerCall = 8

// begin readies the stage for a region.
func (o *output) begin(f *frame, s space, r image.Rectangle, sink pixel.Sink) {
	o.frame, o.space, o.region, o.sink, o.next, o.lag = f, s, r, sink, r.Min.Y, 0
	o.mcus = image.Rectangle{}
	for i := range f.n {
		p := &o.planes[i]
		p.aim(&f.comps[i], r)
		o.mcus = o.mcus.Union(p.mcus())
		if p.looksAbove() {
			o.lag = 1
		}
	}
	for i := range f.n {
		o.planes[i].reset(o.mcus)
	}
	o.stride = (3*r.Dx()+pixel.Pad-1)&^(pixel.Pad-1) + pixel.Pad
	o.rows = room(o.rows, rowsPerCall*o.stride+pixel.Pad)
}

// run takes the coefficients from a source and gives all rows.
func (o *output) run(from source) {
	for y := o.mcus.Min.Y; y < o.mcus.Max.Y; y++ {
		o.transform(from, y)
		end := (y+1)*8*o.frame.vMax - o.lag
		if y+1 == o.frame.mcusY {
			end = o.frame.h
		}
		o.give(min(end, o.region.Max.Y))
		if o.lag > 0 {
			for i := range o.frame.n {
				o.planes[i].carry()
			}
		}
	}
}

// transform makes the samples of MCU row y.
func (o *output) transform(from source, y int) {
	for x := o.mcus.Min.X; x < o.mcus.Max.X; x += runLength {
		n := min(runLength, o.mcus.Max.X-x)
		r := from.read(x, y, n)
		for i := range o.frame.n {
			o.planes[i].transform(o.kernels, &r[i], x-o.mcus.Min.X, n)
		}
	}
	for i := range o.frame.n {
		o.planes[i].finish(y)
	}
}

// give hands over the rows before end.
func (o *output) give(end int) {
	for o.next < end {
		n := min(rowsPerCall, end-o.next)
		for i := range n {
			o.row(o.next+i, o.rows[i*o.stride:][:3*o.region.Dx()])
		}
		o.next += n
		o.sink.Rows(o.rows[:(n-1)*o.stride+3*o.region.Dx()+pixel.Pad], o.stride, n)
	}
}

// row makes row y.
func (o *output) row(y int, dst []byte) {
	first := o.planes[0].samples(o.kernels, y)
	if o.space == grey {
		o.kernels.Grey(dst, first)
		return
	}
	second, third := o.planes[1].samples(o.kernels, y), o.planes[2].samples(o.kernels, y)
	switch o.space {
	case rgb:
		interleave(dst, first, second, third, 0)
	case cmyk:
		interleave(dst, first, second, third, 255)
	default:
		o.kernels.Color(dst, first, second, third)
	}
	if o.space == cmyk || o.space == ycck {
		underBlack(dst, o.planes[3].samples(o.kernels, y))
	}
}
