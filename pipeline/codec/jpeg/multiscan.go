package jpeg

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// multiscan is the source for files of several scans: all coefficients of the region, made before the first is used. Rows of the picture
// below the region are not decoded, but where a row of it lacks data and blocks are smoothed: then it matters which row was the last to have some.
type multiscan struct {
	frame  *frame
	mcus   image.Rectangle // that it holds
	bottom int             // row of MCUs behind the last that is read
	grids  [maxComponents]grid
	good   int // the last row of MCUs in which the last scan had data
	smooth smoother
	run    run
}

// grid is the blocks of one component, those of the region with what is around them for smoothing.
type grid struct {
	blocks
	area image.Rectangle // that it holds, in blocks of the component
	// sent has a bit for each coefficient that is not zero, in the order of the file, of all blocks of the picture down to the last
	// row that is read, row by row. Refining a block takes that many bits, whether the region needs the block or not. Progressive files only.
	sent []uint64
}

// decode reads all scans for a region.
func (m *multiscan) decode(src []byte, f *frame, scans []scan, c *coder, mcus image.Rectangle) {
	smoothed := f.smoothed()
	if smoothed {
		mcus = mcus.Inset(-smoothReach).Intersect(image.Rect(0, 0, f.mcusX, f.mcusY))
	}
	m.frame, m.mcus, m.bottom = f, mcus, mcus.Max.Y
	m.scan(src, scans, c)
	m.smooth.on = smoothed
	if !smoothed {
		return
	}
	if m.good < m.bottom-1 && m.bottom < f.mcusY { // a row further down may have data
		m.bottom = f.mcusY
		m.scan(src, scans, c)
	}
	m.smooth.begin(f, len(scans) == 1, m.good)
}

// scan reads all scans, down to the bottom.
func (m *multiscan) scan(src []byte, scans []scan, c *coder) {
	f := m.frame
	for i := range f.n {
		m.grids[i].reset(&f.comps[i], m.mcus)
		if f.progressive {
			m.grids[i].sent = zeroed(m.grids[i].sent, f.comps[i].blocksX*m.rows(i))
		}
	}
	for i := range scans {
		c.open(src, f, &scans[i])
		if f.progressive {
			m.progressive(c)
		} else {
			m.sequential(c)
		}
	}
}

// reset makes room for the component's blocks of some MCUs, all zero.
func (g *grid) reset(c *component, mcus image.Rectangle) {
	g.area = image.Rect(mcus.Min.X*c.h, mcus.Min.Y*c.v, mcus.Max.X*c.h, mcus.Max.Y*c.v)
	g.stride = even(g.area.Dx())
	g.b = zeroed(g.b, g.stride*g.area.Dy())
}

// keptBlocks is how many blocks of a component are kept for the next file: 32 MiB of coefficients.
const keptBlocks = 1 << 18

// trim lets go of the memory of a large picture.
func (m *multiscan) trim() {
	for i := range m.grids {
		g := &m.grids[i]
		if cap(g.b) > keptBlocks {
			g.b = nil
		}
		if cap(g.sent) > 16*keptBlocks {
			g.sent = nil
		}
	}
}

// zeroed returns n zero elements, in s if it has room.
func zeroed[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// row is the blocks of row y, nil if the grid does not have it.
func (g *grid) row(y int) []kernel.Block {
	if y < g.area.Min.Y || y >= g.area.Max.Y {
		return nil
	}
	return g.b[(y-g.area.Min.Y)*g.stride:][:g.area.Dx()]
}

// at is block (x, y), nil if the grid does not have it.
func (g *grid) at(x, y int) *kernel.Block {
	if !(image.Point{X: x, Y: y}).In(g.area) {
		return nil
	}
	return &g.b[(y-g.area.Min.Y)*g.stride+x-g.area.Min.X]
}

// sequential reads one scan of a sequential file. Its MCUs are those of the picture, or single blocks if it has one component.
func (m *multiscan) sequential(c *coder) {
	r := m.mcus
	if c.scan.n == 1 {
		comp := &m.frame.comps[c.scan.comps[0].index]
		r = m.grids[c.scan.comps[0].index].area.Intersect(image.Rect(0, 0, comp.blocksX, comp.blocksY))
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
		g := &m.grids[u.comp]
		out := &g.b[(y*u.h+u.y)*g.stride+x*u.w+u.x]
		out[0] = b[0]
		for i, v := range b {
			if v != 0 {
				out[i] = v
			}
		}
	}
}

func (m *multiscan) read(x, y, n int) *run {
	for i := range m.frame.n {
		comp, g := &m.frame.comps[i], &m.grids[i]
		if m.smooth.on {
			m.run[i] = m.smooth.blocks(i, g, image.Rect(x*comp.h, y*comp.v, (x+n)*comp.h, (y+1)*comp.v))
			continue
		}
		at := (y*comp.v-g.area.Min.Y)*g.stride + x*comp.h - g.area.Min.X
		m.run[i] = blocks{b: g.b[at:], stride: g.stride}
	}
	return &m.run
}
