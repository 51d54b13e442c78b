package vp8

// Kinds of blocks of coefficients.
const (
	lumaWithoutFirst = iota
	secondOrder
	chroma
	lumaWithFirst
)

var (
	// bands are the bands of coefficients in their order, and of none behind them.
	bands  = [17]uint8{0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 0}
	zigzag = [16]uint8{0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15}
	// furtherBits are the probabilities of the bits that are added to a large value's base.
	furtherBits = [4][]uint8{
		{173, 148, 140}, {176, 155, 140, 135}, {180, 157, 141, 134, 130}, {254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129},
	}
)

// context is what macroblocks tell those to their right and below: which blocks at their edge have coefficients.
type context struct {
	luma   [4]uint8
	chroma [2][2]uint8 // of Cb and of Cr
	second [1]uint8
}

// The blocks of a macroblock: 16 of luma, 4 of Cb, 4 of Cr, which have pixels, and one of second order.
const (
	lumaBlocks  = 16
	pixelBlocks = 24
	secondBlock = pixelBlocks
	spareBlock  = secondBlock + 1 // takes what lies behind the last one
	allBlocks   = spareBlock + 1
)

// residue is a macroblock's coefficients.
type residue struct {
	coefficients [allBlocks][16]int16
	counts       [pixelBlocks]uint8 // places behind the last coefficient that was read of each; 0 of a copy, which has none that are 0
}

// How a block of coefficients is transformed: not, by its first one alone, by its first three, or by all.
const (
	transformNone = iota
	transformFirst
	transformThree
	transformAll
)

// kindsOfCounts are how blocks with so many coefficients are transformed, 4 or more by the last one, where the first one is 0.
var kindsOfCounts = [5]uint8{transformNone, transformNone, transformThree, transformThree, transformAll}

// readResidue reads the coefficients of a macroblock (section 13).
func (d *Decoder) readResidue(p *partition, m *modes, above, left *context, r *residue) {
	r.coefficients = [allBlocks][16]int16{}
	f := &d.factors[m.segment]
	kind, first := lumaWithFirst, 0
	if !m.byBlocks {
		kind, first = lumaWithoutFirst, 1
		var n [1]uint8
		d.readBlocks(p, secondOrder, &f.second, 0, r.coefficients[secondBlock:][:1], n[:], above.second[:], left.second[:])
		r.spread(int(n[0]))
	}
	d.readBlocks(p, kind, &f.luma, first, r.coefficients[:16], r.counts[:16], above.luma[:], left.luma[:])
	for i := range above.chroma {
		at := 16 + 4*i
		d.readBlocks(p, chroma, &f.chroma, 0, r.coefficients[at:][:4], r.counts[at:][:4], above.chroma[i][:], left.chroma[i][:])
	}
}

// readBlocks reads a square of blocks, of which above and left are contexts: their coefficients from first on, times their factors, and for each block the
// place behind its last one.
func (d *Decoder) readBlocks(p *partition, kind int, factors *[2]int32, first int, blocks [][16]int16, counts, above, left []uint8) {
	for i := d.kernels.readBlocks(p, &d.probabilities[kind], factors, first, blocks, counts, above, left); i < len(blocks); i++ {
		x, y := i%len(above), i/len(above)
		n := d.readBlock(p, kind, int(above[x]+left[y]), factors, first, &blocks[i])
		counts[i], above[x] = uint8(n), number(n > first)
		left[y] = above[x]
	}
}

// kinds are how the blocks are transformed: as those with so many coefficients, or as their values ask for.
func (r *residue) kinds() (kinds [pixelBlocks]uint8) {
	for i, n := range r.counts {
		kinds[i] = max(kindsOfCounts[min(n, 4)], kindOf(&r.coefficients[i]))
	}
	return kinds
}

// kindOf is how a block is transformed that ends with its last coefficient other than 0.
func kindOf(b *[16]int16) uint8 {
	more := b[2] | b[3]
	for _, v := range b[5:] {
		more |= v
	}
	switch {
	case more != 0:
		return transformAll
	case b[1]|b[4] != 0:
		return transformThree
	case b[0] != 0:
		return transformFirst
	}
	return transformNone
}

// hasMore reports whether a block has more than a first coefficient.
func (r *residue) hasMore() bool {
	any := uint8(0)
	for _, n := range r.counts {
		any |= n
	}
	return any > 1
}

// spread gives each block of luma its first coefficient, of the transformed ones of second order, of which there are n.
func (r *residue) spread(n int) {
	second := &r.coefficients[secondBlock]
	if n > 1 {
		inverseWalsh(second, &r.coefficients)
		return
	}
	v := int16((int32(second[0]) + 3) >> 3)
	for i := range 16 {
		r.coefficients[i][0] = v
	}
}

// readBlock reads a block's coefficients from first on, times their factors, and returns the place behind the last one.
func (d *Decoder) readBlock(p *partition, kind, context int, factors *[2]int32, first int, block *[16]int16) int {
	all := &d.probabilities[kind]
	n, w := first, p.window
	probability := &all[bands[n]][context]
	for n < 16 {
		if w.bits < 0 {
			w = p.load(w)
		}
		at, one := w.split(probability[0])
		if !one {
			p.window = w.lower(at)
			return n
		}
		w = w.upper(at)
		for {
			if w.bits < 0 {
				w = p.load(w)
			}
			if at, one = w.split(probability[1]); one {
				break
			}
			w = w.lower(at)
			n++
			if n == 16 {
				p.window = w
				return 16
			}
			probability = &all[bands[n]][0]
		}
		w = w.upper(at)
		if w.bits < 0 {
			w = p.load(w)
		}
		v, next := int32(1), 1
		if at, one = w.split(probability[2]); one {
			var large uint32
			w, large = p.large(w.upper(at), probability)
			v, next = int32(large), 2
		} else {
			w = w.lower(at)
		}
		if w.bits < 0 {
			w = p.load(w)
		}
		w, v = w.sign(v)
		block[zigzag[n]] = int16(v * factors[min(n, 1)])
		n++
		probability = &all[bands[n]][next]
	}
	p.window = w
	return 16
}

// large reads a value of 2 or more.
func (p *partition) large(w window, probability *[11]uint8) (window, uint32) {
	w, a := p.number(w, probability[3])
	if a == 0 {
		if w, a = p.number(w, probability[4]); a == 0 {
			return w, 2
		}
		w, a = p.number(w, probability[5])
		return w, 3 + a
	}
	if w, a = p.number(w, probability[6]); a == 0 {
		if w, a = p.number(w, probability[7]); a == 0 {
			w, a = p.number(w, 159)
			return w, 5 + a
		}
		w, a = p.number(w, 165)
		w, b := p.number(w, 145)
		return w, 7 + 2*a + b
	}
	w, a = p.number(w, probability[8])
	w, b := p.number(w, probability[9+a])
	category := 2*a + b
	v := uint32(0)
	for _, further := range furtherBits[category] {
		w, b = p.number(w, further)
		v = 2*v + b
	}
	return w, v + 3 + 8<<category
}
