package jpeg

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// multiscan is the source for files of several scans: all coefficients of the region, made before the first is used.
type multiscan struct {
	frame *frame
	mcus  image.Rectangle // that it holds
	comps [3]blocks
	run   run
}

// decode reads all scans.
func (m *multiscan) decode(src []byte, f *frame, scans []scan, c *coder, mcus image.Rectangle) {
	m.frame, m.mcus = f, mcus
	for i := range f.n {
		comp, b := &f.comps[i], &m.comps[i]
		b.stride = even(mcus.Dx() * comp.h)
		size := b.stride * mcus.Dy() * comp.v
		if cap(b.b) < size {
			b.b = make([]kernel.Block, size)
		}
		b.b = b.b[:size]
		clear(b.b)
	}
	for i := range scans {
		c.open(src, f, &scans[i])
		m.scan(c)
	}
}

// shrink gives memory back that only a huge picture needs.
func (m *multiscan) shrink() {
	const keep = keptBytes / (2 * len(kernel.Block{}))
	for i := range m.comps {
		if cap(m.comps[i].b) > keep {
			m.comps[i], m.run[i] = blocks{}, blocks{}
		}
	}
}

// scan reads one scan. Its MCUs are those of the picture, or single blocks if it has one component.
func (m *multiscan) scan(c *coder) {
	r := m.mcus
	if c.scan.n == 1 {
		comp := &m.frame.comps[c.scan.comps[0].index]
		r = image.Rect(r.Min.X*comp.h, r.Min.Y*comp.v, r.Max.X*comp.h, r.Max.Y*comp.v)
		r = r.Intersect(image.Rect(0, 0, comp.blocksX, comp.blocksY))
	}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		c.skip(y*c.row + r.Min.X - c.next)
		for x := range r.Dx() {
			if c.mcu() {
				m.mcu(c, x, y-r.Min.Y)
			}
		}
	}
}

// mcu reads an MCU to a place in the region. As in libjpeg, a coefficient that a later scan does not set keeps its value.
func (m *multiscan) mcu(c *coder, x, y int) {
	for _, u := range c.units {
		var b kernel.Block
		c.bits = u.pred.block(c.segment.data, c.bits, &b)
		plane := &m.comps[u.comp]
		out := &plane.b[(y*u.h+u.y)*plane.stride+x*u.w+u.x]
		out[0] = b[0]
		for i, v := range b {
			if v != 0 {
				out[i] = v
			}
		}
	}
}

func (m *multiscan) read(x, y, _ int) *run {
	for i := range m.frame.n {
		comp, b := &m.frame.comps[i], &m.comps[i]
		at := (y-m.mcus.Min.Y)*comp.v*b.stride + (x-m.mcus.Min.X)*comp.h
		m.run[i] = blocks{b: b.b[at:], stride: b.stride}
	}
	return &m.run
}
