package vp8

// blockSide is how many pixels wide and high a block is.
const blockSide = 4

// beginRow sets what is around the macroblocks of a row.
func (d *Decoder) beginRow(y int) {
	for _, p := range d.planes() {
		p.beginRow(y)
	}
}

// reconstruct makes the pixels of a macroblock, before they are filtered, and reports whether it has coefficients. Of the next one, which is not
// made yet, it may change pixels.
func (d *Decoder) reconstruct(m *modes, x, y int) bool {
	if !d.kernels.vector {
		return d.reconstructScalar(m, x, y)
	}
	any, differences := false, &noDifferences
	if !m.skipped {
		differences = &d.differences
		magnitude := d.kernels.transform(differences, &d.residue)
		if magnitude > mostForVector {
			return d.reconstructScalar(m, x, y)
		}
		any = magnitude > 0 || d.residue.hasMore()
	}
	d.predictLuma(m, x, y, differences)
	d.predictChroma(m, x, y, differences)
	return any
}

// predictLuma makes the luma of a macroblock.
func (d *Decoder) predictLuma(m *modes, x, y int, differences *differences) {
	p := &d.luma
	at := p.at(16*x, 16*y)
	if m.byBlocks {
		d.kernels.predictBlocks(p, at, &m.blocks, differences)
		return
	}
	var r rows
	r.predict(p, at, m.luma, 0, x > 0, y > 0)
	d.kernels.predictLuma(p, at, &r, differences)
}

// predictChroma makes the Cb and Cr of a macroblock.
func (d *Decoder) predictChroma(m *modes, x, y int, differences *differences) {
	at := d.cb.at(8*x, 8*y)
	var r rows
	r.predict(&d.cb, at, m.chroma, 0, x > 0, y > 0)
	r.predict(&d.cr, at, m.chroma, 8, x > 0, y > 0)
	d.kernels.predictChroma(&d.cb, &d.cr, at, &r, differences)
}

// reconstructScalar is reconstruct.
func (d *Decoder) reconstructScalar(m *modes, x, y int) bool {
	var kinds [pixelBlocks]uint8
	if !m.skipped {
		kinds = d.residue.kinds()
	}
	luma, chroma := d.luma.at(16*x, 16*y), d.cb.at(8*x, 8*y)
	if m.byBlocks {
		d.reconstructBlocks(m, luma, &kinds)
	} else {
		predict(&d.luma, luma, m.luma, x > 0, y > 0)
		for i, kind := range kinds[:lumaBlocks] {
			d.addBlock(&d.luma, luma+d.luma.block(i, 4), i, kind)
		}
	}
	predict(&d.cb, chroma, m.chroma, x > 0, y > 0)
	predict(&d.cr, chroma, m.chroma, x > 0, y > 0)
	d.addChroma(&d.cb, chroma, 16, kinds[16:20])
	d.addChroma(&d.cr, chroma, 20, kinds[20:])
	return kinds != [pixelBlocks]uint8{}
}

// reconstructBlocks makes luma block by block, each of which is predicted from those before. Those at the right edge find above them to the right what is
// above the macroblock.
func (d *Decoder) reconstructBlocks(m *modes, at int, kinds *[pixelBlocks]uint8) {
	p := &d.luma
	right := p.samples[at-p.stride+16:][:blockSide]
	for i := 3; i < 15; i += blockSide {
		copy(p.samples[at+i*p.stride+16:], right)
	}
	for i, mode := range m.blocks {
		to := at + p.block(i, 4)
		predictBlock(p, to, mode)
		d.addBlock(p, to, i, kinds[i])
	}
}

// addChroma adds four blocks, all in the same way as libwebp does: where one has more than a first coefficient, all are taken to have.
func (d *Decoder) addChroma(p *plane, at, first int, kinds []uint8) {
	all := false
	for _, kind := range kinds {
		all = all || kind >= transformThree
	}
	for i, kind := range kinds {
		if all {
			kind = transformAll
		}
		d.addBlock(p, at+p.block(i, 2), first+i, kind)
	}
}

// addBlock adds what a block of coefficients becomes.
func (d *Decoder) addBlock(p *plane, at, i int, kind uint8) {
	in := &d.residue.coefficients[i]
	switch kind {
	case transformFirst:
		addFirst(p, at, in[0])
	case transformThree:
		addThree(p, at, in)
	case transformAll:
		addAll(p, at, in)
	}
}
