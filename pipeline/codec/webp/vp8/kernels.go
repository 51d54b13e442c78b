package vp8

// What the assembly makes at once: shorter rows go to its twins in Go.
const (
	upsampleGroup = 16
	colorGroup    = 32
)

// kernels are what is done to many samples at once, in assembly where vector is set.
type kernels struct{ vector bool }

// transform makes what a macroblock's coefficients add to its pixels, and returns the largest magnitude of one. Above mostForVector the differences may be
// others than those of blocks with few coefficients.
func (k *kernels) transform(d *differences, r *residue) int {
	return transformBlocks(&d[0][0], &r.coefficients[0][0])
}

// predictBlocks makes a macroblock of luma at a place, block by block.
func (k *kernels) predictBlocks(p *plane, at int, modes *[lumaBlocks]uint8, d *differences) {
	_, _ = p.samples[at-p.stride-1], p.samples[at+15*p.stride+15]
	predictBlocks(&p.samples[at], p.stride, &modes[0], &predictors[0].threes[0], &d[0][0])
}

// predictLuma makes a macroblock of luma at a place, row by row.
func (k *kernels) predictLuma(p *plane, at int, r *rows, d *differences) {
	_, _ = p.samples[at-p.stride-1], p.samples[at+15*p.stride+15]
	predictLuma(&p.samples[at], p.stride, &r.from[0], int(r.left), int(r.corner), &d[0][0])
}

// predictChroma makes a macroblock of chroma at a place of both planes, row by row.
func (k *kernels) predictChroma(cb, cr *plane, at int, r *rows, d *differences) {
	_, _ = cb.samples[at-cb.stride-1], cb.samples[at+7*cb.stride+7]
	_, _ = cr.samples[at-cb.stride-1], cr.samples[at+7*cb.stride+7]
	predictChroma(&cb.samples[at], &cr.samples[at], cb.stride, &r.from[0], int(r.left), int(r.corner), &d[lumaBlocks][0])
}

// upsample doubles samples, of which near and far have one more at each end.
func (k *kernels) upsample(dst, near, far []byte) {
	n := len(near) - 2
	if !k.vector || n < upsampleGroup {
		upsampleScalar(dst, near, far)
		return
	}
	_, _ = dst[2*n-1], far[n+1]
	upsampleRow(&dst[0], &near[0], &far[0], n)
}

// color converts pixels.
func (k *kernels) color(dst, y, cb, cr []byte) {
	n := len(y)
	if !k.vector || n < colorGroup {
		colorScalar(dst, y, cb, cr)
		return
	}
	_, _, _ = dst[3*n-1], cb[n-1], cr[n-1]
	colorRow(&dst[0], &y[0], &cb[0], &cr[0], n)
}

// How many bytes of data a block's coefficients, a macroblock's modes, and its coefficients in a copy are read with in assembly.
const (
	leastForBlock  = 272
	leastForModes  = 128
	leastForCopied = 1280
)

// has reports whether the assembly may read a partition that must have n more bytes.
func (p *partition) has(n int) bool { return !p.beyond && p.at+n <= len(p.data) }

// readBlocks is Decoder.readBlocks for as many blocks as it returns.
func (k *kernels) readBlocks(p *partition, probabilities *[8][3][11]uint8, factors *[2]int32, first int, blocks [][16]int16, counts, above, left []uint8) int {
	if !k.vector || !p.has(leastForBlock) {
		return 0
	}
	side := len(above)
	_, _, _ = blocks[side*side-1], counts[side*side-1], left[side-1]
	return readBlocks(&p.value, &probabilities[0][0][0], &factors[0], &blocks[0][0], &counts[0], &above[0], &left[0], side, side*side, first)
}

// readCopied reads the coefficients of a macroblock from a copy, from one on.
func (k *kernels) readCopied(c *copyReader, r *residue, at int) {
	if !k.vector || c.at+leastForCopied > len(c.data) {
		c.readCoefficients(r, at)
		return
	}
	readCopied(&c.bits, &c.data[0], (*uint64)(&c.table[0]), &copiedPlaces[0], &r.coefficients[0][0], at)
}

// scale multiplies all coefficients by their factors.
func (k *kernels) scale(r *residue, f *factors) {
	if !k.vector {
		r.scale(f)
		return
	}
	scaleBlocks(&r.coefficients[0][0], &f.luma[0], &f.chroma[0], &f.second[0])
}
