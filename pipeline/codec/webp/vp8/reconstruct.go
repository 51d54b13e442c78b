package vp8

// What stands in the place of neighbours outside of the picture.
const (
	outsideAbove = 127
	outsideLeft  = 129
)

// beginRow sets what is around the first macroblock of a row.
func (d *Decoder) beginRow(y int) {
	c := &d.canvas
	for i := range 16 {
		c[lumaAt+i*canvasStride-1] = outsideLeft
	}
	for i := range 8 {
		c[cbAt+i*canvasStride-1], c[crAt+i*canvasStride-1] = outsideLeft, outsideLeft
	}
	if y > 0 {
		c[lumaAt-canvasStride-1], c[cbAt-canvasStride-1], c[crAt-canvasStride-1] = outsideLeft, outsideLeft, outsideLeft
		return
	}
	for i := -1; i < 20; i++ {
		c[lumaAt-canvasStride+i] = outsideAbove
	}
	for i := -1; i < 8; i++ {
		c[cbAt-canvasStride+i], c[crAt-canvasStride+i] = outsideAbove, outsideAbove
	}
}

// reconstruct makes the pixels of a macroblock, before they are filtered.
func (d *Decoder) reconstruct(m *modes, x, y int) {
	c := &d.canvas
	if x > 0 {
		d.turnLeft()
	}
	if y > 0 {
		e := &d.edges[x]
		copy(c[lumaAt-canvasStride:], e.luma[:])
		copy(c[cbAt-canvasStride:], e.cb[:])
		copy(c[crAt-canvasStride:], e.cr[:])
	}
	if m.byBlocks {
		d.reconstructBlocks(m, x, y)
	} else {
		predict(c, lumaAt, 16, m.luma, x > 0, y > 0)
		for i := range 16 {
			d.addBlock(i, lumaAt+i/4*4*canvasStride+i%4*4)
		}
	}
	predict(c, cbAt, 8, m.chroma, x > 0, y > 0)
	predict(c, crAt, 8, m.chroma, x > 0, y > 0)
	d.addChroma(16, cbAt)
	d.addChroma(20, crAt)
	d.keep(x, y)
}

// turnLeft makes the last columns of the macroblock before those to the left of the next one.
func (d *Decoder) turnLeft() {
	c := &d.canvas
	for i := -1; i < 16; i++ {
		row := c[lumaAt+i*canvasStride-1:][:17]
		row[0] = row[16]
	}
	for i := -1; i < 8; i++ {
		row := c[cbAt+i*canvasStride-1:][:25]
		row[0], row[16] = row[8], row[24]
	}
}

// reconstructBlocks makes luma block by block, each of which is predicted from those before.
func (d *Decoder) reconstructBlocks(m *modes, x, y int) {
	c := &d.canvas
	right := c[lumaAt-canvasStride+16:][:4]
	switch {
	case y > 0 && x < d.columns-1:
		copy(right, d.edges[x+1].luma[:])
	case y > 0:
		last := d.edges[x].luma[15]
		right[0], right[1], right[2], right[3] = last, last, last, last
	}
	for i := 3; i < 15; i += 4 {
		copy(c[lumaAt+i*canvasStride+16:], right)
	}
	for i, mode := range m.blocks {
		at := lumaAt + i/4*4*canvasStride + i%4*4
		d.kernels.predictBlock(c, at, mode)
		d.addBlock(i, at)
	}
}

// addBlock adds what a block of coefficients becomes.
func (d *Decoder) addBlock(i, at int) {
	in := &d.residue.coefficients[i]
	switch d.residue.kinds[i] {
	case transformFirst:
		addFirst(&d.canvas, at, in[0])
	case transformThree:
		addThree(&d.canvas, at, in)
	case transformAll:
		d.kernels.addAll(&d.canvas, at, in)
	}
}

// addChroma adds four blocks, all in the same way as libwebp does: where one has more than a first coefficient, all are taken to have.
func (d *Decoder) addChroma(first, at int) {
	all := false
	for i := range 4 {
		all = all || d.residue.kinds[first+i] >= transformThree
	}
	for i := range 4 {
		to, in := at+i/2*4*canvasStride+i%2*4, &d.residue.coefficients[first+i]
		switch {
		case all:
			d.kernels.addAll(&d.canvas, to, in)
		case d.residue.kinds[first+i] == transformFirst:
			addFirst(&d.canvas, to, in[0])
		}
	}
}

// keep copies a macroblock to the picture, and its lowest row to where the row below finds it.
func (d *Decoder) keep(x, y int) {
	c, e := &d.canvas, &d.edges[x]
	copy(e.luma[:], c[lumaAt+15*canvasStride:])
	copy(e.cb[:], c[cbAt+7*canvasStride:])
	copy(e.cr[:], c[crAt+7*canvasStride:])
	for i := range 16 {
		copy(d.Y[(16*y+i)*d.YStride+16*x:][:16], c[lumaAt+i*canvasStride:])
	}
	for i := range 8 {
		at := (8*y+i)*d.CStride + 8*x
		copy(d.Cb[at:][:8], c[cbAt+i*canvasStride:])
		copy(d.Cr[at:][:8], c[crAt+i*canvasStride:])
	}
}
