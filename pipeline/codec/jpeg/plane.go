package jpeg

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// plane holds the samples of one component that the rows in work need: row 0 is the last one of the MCU row before, then
// come the rows of the current MCU row. Left of the first MCU is room for a neighbour, right of the last one too, and for as many samples as kernels
// take rather than fewer.
type plane struct {
	comp   *component
	region image.Rectangle // of the picture, in pixels
	used   image.Rectangle // samples that the region is made from, without neighbours
	left   int             // column of the first sample held
	top    int             // row of the picture that row 1 is
	pix    []byte
	stride int
	full   []byte // an upsampled row
}

// lead is where the first MCU starts in a row of a plane, and how many samples there is room for behind the last one.
const lead = 32

// aim sets the region.
func (p *plane) aim(c *component, r image.Rectangle) {
	p.comp, p.region = c, r
	p.used = image.Rect(r.Min.X/c.upX, r.Min.Y/c.upY, (r.Max.X-1)/c.upX+1, (r.Max.Y-1)/c.upY+1)
}

func (p *plane) looksAside() bool { return p.comp.interpolated && p.comp.upX == 2 }
func (p *plane) looksAbove() bool { return p.comp.interpolated && p.comp.upY == 2 }

// mcus is which MCUs have the used samples and their neighbours.
func (p *plane) mcus() image.Rectangle {
	c, r := p.comp, p.used
	if p.looksAside() {
		r.Min.X, r.Max.X = max(r.Min.X-1, 0), min(r.Max.X+1, c.w)
	}
	if p.looksAbove() {
		r.Min.Y, r.Max.Y = max(r.Min.Y-1, 0), min(r.Max.Y+1, c.rows)
	}
	w, h := 8*c.h, 8*c.v
	return image.Rect(r.Min.X/w, r.Min.Y/h, ceilDiv(r.Max.X, w), ceilDiv(r.Max.Y, h))
}

// reset makes room for the MCUs of the region.
func (p *plane) reset(mcus image.Rectangle) {
	c := p.comp
	p.left, p.top = mcus.Min.X*8*c.h, mcus.Min.Y*8*c.v
	p.stride = lead + (8*even(mcus.Dx()*c.h)+lead+63)&^63
	p.pix = room(p.pix, (1+8*c.v)*p.stride)
	if c.upX > 1 || c.interpolated {
		p.full = room(p.full, max(p.used.Dx(), lead)*c.upX)
	}
}

// transform makes the samples of n MCUs, x MCUs right of the first one.
func (p *plane) transform(k *kernel.JPEG, b *blocks, x, n int) {
	w := even(n * p.comp.h)
	for y := range p.comp.v {
		at := (1+8*y)*p.stride + lead + 8*x*p.comp.h
		k.IDCT(p.pix[at:], p.stride, b.b[y*b.stride:][:w], &p.comp.q)
	}
}

// line is row y of the picture's samples, from column x on.
func (p *plane) line(y, x int) []byte {
	return p.pix[(y-p.top+1)*p.stride+lead+x-p.left:]
}

// finish completes the samples of MCU row y: at the sides of the picture the last sample is its own neighbour.
func (p *plane) finish(y int) {
	c := p.comp
	p.top = y * 8 * c.v
	if !p.looksAside() {
		return
	}
	for i := range 8 * c.v {
		row := p.pix[(1+i)*p.stride:]
		if p.used.Min.X == 0 {
			row[lead-1] = row[lead]
		}
		if p.used.Max.X == c.w {
			end := lead + c.w - p.left
			row[end] = row[end-1]
		}
	}
}

// carry keeps the last row for the next MCU row.
func (p *plane) carry() { copy(p.pix[:p.stride], p.pix[8*p.comp.v*p.stride:]) }

// samples gives the component's samples of row y of the region, at full size. A narrow row is doubled with what happens to lie behind it, which is
// left out of what is given.
func (p *plane) samples(k *kernel.JPEG, y int) []byte {
	c := p.comp
	j, x, n := y/c.upY, p.used.Min.X, max(p.used.Dx(), k.Least)
	switch {
	case p.looksAside() && p.looksAbove():
		far, _ := p.far(y)
		k.H2V2(p.full, p.line(j, x-1)[:n+2], p.line(far, x-1)[:n+2])
	case p.looksAside():
		k.H2V1(p.full, p.line(j, x-1)[:n+2])
	case p.looksAbove():
		far, bias := p.far(y)
		k.H1V2(p.full, p.line(j, x)[:n], p.line(far, x)[:n], bias)
	case c.upX == 1:
		return p.line(j, x)[:p.used.Dx()]
	default:
		repeat(p.full, p.line(j, x)[:p.used.Dx()], c.upX)
	}
	return p.full[p.region.Min.X-x*c.upX:][:p.region.Dx()]
}

// far is the row of samples next to the one that row y of the picture lies in, at the picture's edge that one itself, and
// the bias for that side.
func (p *plane) far(y int) (row int, bias uint16) {
	if y%2 == 0 {
		return max(y/2-1, 0), 1
	}
	return min(y/2+1, p.comp.rows-1), 2
}

// repeat writes each sample n times.
func repeat(dst, src []byte, n int) {
	for i, v := range src {
		d := dst[i*n:][:n]
		for j := range d {
			d[j] = v
		}
	}
}
