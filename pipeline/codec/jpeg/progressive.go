package jpeg

// progressive reads one scan of a progressive file, of which there are four kinds.
func (m *multiscan) progressive(c *coder) {
	s := c.scan
	if s.band.first == 0 {
		rows := m.bottom
		if s.n == 1 {
			rows = m.rows(s.comps[0].index)
		}
		m.walk(c, rows, func(x, y, n int) { m.first(c, x, y, n) })
		return
	}
	index := s.comps[0].index
	g, across := &m.grids[index], m.frame.comps[index].blocksX
	m.walk(c, m.rows(index), func(x, y, n int) {
		c.readRow(g.row(y), g.area.Min.X-x, g.sent[y*across+x:][:n])
	})
}

// rows is how many rows of blocks a scan of one component has, as far as they matter.
func (m *multiscan) rows(comp int) int {
	c := &m.frame.comps[comp]
	return min(m.bottom*c.v, c.blocksY)
}

// walk gives all MCUs that have data in the first rows of a scan to read: n of row y from column x on.
func (m *multiscan) walk(c *coder, rows int, read func(x, y, n int)) {
	height := 1 // of a row of the picture's MCUs
	if c.scan.n == 1 {
		height = m.frame.comps[c.scan.comps[0].index].v
	}
	for y := range rows {
		for x := 0; x < c.row; {
			most := c.row - x
			if !c.exhausted() {
				m.good = y / height
			} else if c.left == 0 { // libjpeg looks before it passes a restart marker, and then before the second MCU
				most = 1
			}
			n := c.take(most)
			if !c.empty {
				read(x, y, n)
			}
			x += n
		}
	}
}

// first reads the first coefficients of n MCUs, or one more bit of them.
func (m *multiscan) first(c *coder, x, y, n int) {
	b, data, end := c.bits, c.segment.data, c.segment.bits
	low, refine := c.scan.band.low, c.scan.band.high > 0
	for ; n > 0 && b.consumed() <= end; n-- {
		for i := range c.units {
			u := &c.units[i]
			out := m.grids[u.comp].at(x*u.w+u.x, y*u.h+u.y)
			if refine {
				b = b.refill(data)
				if out != nil {
					out[0] |= int16(b.acc>>63) << low
				}
				b = b.drop(1)
				continue
			}
			b = u.pred.first(data, b)
			if out != nil {
				out[0] = int16(u.pred.last << low)
			}
		}
		x++
	}
	c.bits = b
}
