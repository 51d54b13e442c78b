package vp8l

import "fmt"

// The kinds of transforms.
const (
	prediction = iota
	crossColor
	subtractGreen
	indexing
	transformKinds
)

// transform is what was done to the pixels before they were coded.
type transform struct {
	kind int
	w    int      // of the picture behind it
	bits int      // of the parts that image has pixels for; of an index how many share one, as a power of 2
	data []uint32 // of a prediction and of colors a pixel for each part; of an index its colors
}

// readTransform reads a transform, and sets the picture's width to that in front of it.
func (s *stream) readTransform(p *picture) (err error) {
	t := transform{kind: s.bits.read(2), w: p.w}
	if s.seen[t.kind] {
		return fmt.Errorf("%w: a transform twice", ErrData)
	}
	s.seen[t.kind] = true
	switch t.kind {
	case prediction, crossColor:
		t.bits = 2 + s.bits.read(3)
		t.data, err = s.readPicture(parts(p.w, t.bits), parts(p.h, t.bits))
	case indexing:
		n := 1 + s.bits.read(8)
		switch {
		case n <= 2:
			t.bits = 3
		case n <= 4:
			t.bits = 2
		case n <= 16:
			t.bits = 1
		}
		p.w = parts(p.w, t.bits)
		if t.data, err = s.readPicture(n, 1); err == nil {
			t.expandColors(&s.decoder.within)
		}
	}
	s.transforms = append(s.transforms, t)
	return err
}

// expandColors makes colors of differences, and those that are not there transparent black.
func (t *transform) expandColors(memory *words) {
	colors := memory.take(1 << (8 >> t.bits))
	clear(colors)
	for i, v := range t.data {
		if colors[i] = v; i > 0 {
			colors[i] = add(v, colors[i-1])
		}
	}
	t.data = colors
}

// undo undoes the transform of h rows from a picture's first on, in pix or in more of its memory.
func (t *transform) undo(pix []uint32, h int, k kernels) []uint32 {
	switch t.kind {
	case prediction:
		t.undoPrediction(pix, k)
	case crossColor:
		t.undoColors(pix, k)
	case subtractGreen:
		for i, v := range pix {
			g := v >> 8 & 0xff
			pix[i] = v&0xff00ff00 | (v&0xff00ff+(g<<16|g))&0xff00ff
		}
	case indexing:
		return t.lookUp(pix, h)
	}
	return pix
}

// lookUp makes colors of indices, from the last pixel to the first: a row may become longer, and no pixel lies before the indices that it is of.
func (t *transform) lookUp(pix []uint32, h int) []uint32 {
	stride := parts(t.w, t.bits)
	pix = pix[:t.w*h]
	size := 8 >> t.bits
	for y := h - 1; y >= 0; y-- {
		indices, row := pix[y*stride:], pix[y*t.w:]
		for x := t.w - 1; x >= 0; x-- {
			v := indices[x>>t.bits] >> 8 & 0xff >> (x & (1<<t.bits - 1) * size)
			row[x] = t.data[v&(1<<size-1)]
		}
	}
	return pix
}

// undoColors adds to red and blue what green and red stand for.
func (t *transform) undoColors(pix []uint32, k kernels) {
	stride := parts(t.w, t.bits)
	for i := 0; i < len(pix); i += t.w {
		k.addColors(pix[i:i+t.w], t.data[i/t.w>>t.bits*stride:], t.bits)
	}
}

// addColorsScalar is undoColors for a row from x on, whose parts have one pixel each.
func addColorsScalar(row, parts []uint32, x, bits int) {
	for ; x < len(row); x++ {
		v, m := row[x], parts[x>>bits]
		g := int32(int8(v >> 8))
		r := int32(v>>16) + int32(int8(m))*g>>5
		b := int32(v) + int32(int8(m>>8))*g>>5
		b += int32(int8(m>>16)) * int32(int8(r)) >> 5
		row[x] = v&0xff00ff00 | uint32(r)&0xff<<16 | uint32(b)&0xff
	}
}
