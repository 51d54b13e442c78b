package jpeg

// The part of the oracle that progressive files need: one coefficient after the other, as in libjpeg's jdphuff.c, and the block
// smoothing of jdcoefct.c.

// progression checks the parameters of a scan and keeps account of what is known after it.
func (o *oracle) progression() {
	bad := o.ah != 0 && o.al != o.ah-1 || o.al > 13
	if o.ss == 0 {
		bad = bad || o.se != 0
	} else {
		bad = bad || o.ss > o.se || o.se > 63 || len(o.scan) != 1
	}
	if bad {
		o.fail(errBroken)
	}
	for _, c := range o.scan {
		for k := min(o.ss, 1); k <= max(o.se, 9); k++ {
			c.prev[k] = 0
			if o.scans > 1 {
				c.prev[k] = c.bits[k]
			}
		}
		for k := o.ss; k <= o.se; k++ {
			c.bits[k] = o.al
		}
	}
}

// band reads what a scan has of a block.
func (o *oracle) band(c *oracleComponent, b *[64]int16) {
	switch {
	case o.ss == 0 && o.ah == 0:
		c.pred += o.coefficient(o.symbol(o.dc[c.td]))
		b[0] = int16(c.pred << o.al)
	case o.ss == 0:
		if o.get(1) == 1 {
			b[0] |= 1 << o.al
		}
	case o.ah == 0:
		o.firstBand(c, b)
	default:
		o.refineBand(c, b)
	}
}

func (o *oracle) firstBand(c *oracleComponent, b *[64]int16) {
	if o.eobrun > 0 {
		o.eobrun--
		return
	}
	for k := o.ss; k <= o.se; k++ {
		s := o.symbol(o.ac[c.ta])
		run, size := s>>4, s&15
		switch {
		case size == 0 && run == 15:
			k += 15
		case size == 0:
			o.eobrun = 1<<run + o.get(run) - 1
			return
		default:
			k += run
			b[oracleZigzag[k]] = int16(o.coefficient(size) << o.al)
		}
	}
}

func (o *oracle) refineBand(c *oracleComponent, b *[64]int16) {
	step := int16(1) << o.al
	refine := func(at int) {
		if o.get(1) == 0 || b[at]&step != 0 {
			return
		}
		if b[at] >= 0 {
			b[at] += step
		} else {
			b[at] -= step
		}
	}
	k := o.ss
	for ; o.eobrun == 0 && k <= o.se; k++ {
		s := o.symbol(o.ac[c.ta])
		run, v := s>>4, int16(0)
		if s&15 != 0 {
			v = -step
			if o.get(1) == 1 {
				v = step
			}
		} else if run != 15 {
			o.eobrun = 1<<run + o.get(run)
			break
		}
		for ; k <= o.se; k++ {
			if at := oracleZigzag[k]; b[at] != 0 {
				refine(at)
			} else if run--; run < 0 {
				break
			}
		}
		if v != 0 {
			b[oracleZigzag[k]] = v
		}
	}
	if o.eobrun > 0 {
		for ; k <= o.se; k++ {
			if at := oracleZigzag[k]; b[at] != 0 {
				refine(at)
			}
		}
		o.eobrun--
	}
}

// smoothing reports whether blocks are smoothed.
func (o *oracle) smoothing() bool {
	useful := false
	for _, c := range o.comps {
		if !o.prog || c.q == nil || c.bits[0] < 0 {
			return false
		}
		for k := range 10 {
			if c.q[oracleZigzag[k]] == 0 {
				return false
			}
			useful = useful || k > 0 && c.bits[k] != 0
		}
	}
	return useful
}

// smoothed is a block with guesses from the first coefficients around it.
func (o *oracle) smoothed(c *oracleComponent, x, y int) [64]int16 {
	rows, my := c.v, y/c.v
	if my == o.my-1 && c.hb%c.v != 0 {
		rows = c.hb % c.v
	}
	row, n := my*rows+y%c.v, rows*o.my
	var w [25]int
	for i := range w {
		dx, dy := i%5-2, i/5-2
		for row+dy < 0 {
			dy++
		}
		for row+dy >= n {
			dy--
		}
		w[i] = int(c.coef[(y+dy)*c.bw+max(0, min(x+dx, c.wb-1))][0])
	}
	bits := c.bits
	if my > o.good {
		bits = c.prev
		if o.scans == 1 {
			bits = [64]int{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1}
		}
	}
	blind := true
	for k := 1; k < 10; k++ {
		blind = blind && bits[k] == -1
	}
	b := c.coef[y*c.bw+x]
	estimate := func(k, al int, weights map[int]int) {
		num := 0
		for i, weight := range weights {
			num += weight * w[i] * c.q[0]
		}
		q := c.q[oracleZigzag[k]]
		v := (q<<7 + max(num, -num)) / (q << 8)
		if al > 0 && v >= 1<<al {
			v = 1<<al - 1
		}
		if num < 0 {
			v = -v
		}
		b[oracleZigzag[k]] = int16(v)
	}
	for k := 1; k < 10; k++ {
		if bits[k] == 0 || b[oracleZigzag[k]] != 0 || k > 5 && !blind {
			continue
		}
		estimate(k, bits[k], oracleWeights(k, blind))
	}
	if blind {
		estimate(0, 0, oracleWeights(0, true))
	}
	return b
}

// oracleWeights builds the weights of the neighbours from what makes them up: they are odd or even in each direction, and of coefficients
// that are each other's mirror images one is the other's transpose.
func oracleWeights(k int, blind bool) map[int]int {
	w := map[int]int{}
	// mirror sets (x, y) from the middle and its images, with a sign for each direction.
	mirror := func(x, y, v, signX, signY int) {
		w[(2+y)*5+2+x] = v
		w[(2+y)*5+2-x] = v * signX
		w[(2-y)*5+2+x] = v * signY
		w[(2-y)*5+2-x] = v * signX * signY
	}
	quarter := func(v [3][3]int, signX, signY int) { // v[y][x], from the middle to the lower right
		for y := range 3 {
			for x := range 3 {
				if v[y][x] != 0 {
					mirror(x, y, v[y][x], signX, signY)
				}
			}
		}
	}
	transposed := func(of int) map[int]int {
		for i, v := range oracleWeights(of, blind) {
			w[i%5*5+i/5] = v
		}
		return w
	}
	switch {
	case k == 0:
		quarter([3][3]int{{152, 42, -8}, {42, 6, -6}, {-8, -6, -2}}, 1, 1)
	case k == 1 && blind:
		quarter([3][3]int{{0, -38, 3}, {0, -13, 3}, {0, 1, 1}}, -1, 1)
	case k == 1:
		quarter([3][3]int{{0, -50, 7}}, -1, 1)
	case k == 3 && blind:
		quarter([3][3]int{{-14, -5, 0}, {7, 2, 0}, {1, 0, 0}}, 1, 1)
	case k == 3:
		quarter([3][3]int{{-24}, {13}, {-1}}, 1, 1)
	case k == 4 && blind:
		quarter([3][3]int{{}, {0, 9}, {0, 0, -1}}, -1, -1)
	case k == 4:
		quarter([3][3]int{{}, {0, 10, -1}, {0, -1, 0}}, -1, -1)
	case k == 6 && blind:
		quarter([3][3]int{{0, -2}, {0, -1}}, -1, 1)
	case k == 7 && blind:
		quarter([3][3]int{{}, {3, -1}}, 1, -1)
	case k == 2:
		return transposed(1)
	case k == 5:
		return transposed(3)
	case k == 8:
		return transposed(7)
	case k == 9:
		return transposed(6)
	}
	return w
}
