package vp8l

// kernels are what is done to many pixels, in assembly where vector is set.
type kernels struct{ vector bool }

// predictors are the kernels of the modes, and what they look at first: so many pixels behind the corner. Mode 0 has none.
var predictors = [14]struct {
	run  func(pix, above *uint32, n int)
	from int
}{
	1: {predictLeft, 0}, 2: {predictAbove, 1}, 3: {predictAbove, 2}, 4: {predictAbove, 0},
	5: {predictMean3, 0}, 6: {predictMeanLeft, 0}, 7: {predictMeanLeft, 1}, 8: {predictMeanAbove, 0}, 9: {predictMeanAbove, 1},
	10: {predictMean4, 0}, 11: {predictNearer, 0}, 12: {predictContinued, 0}, 13: {predictContinuedByHalf, 0},
}

// predict is undoRun.
func (k kernels) predict(pix []uint32, i, n, w, mode int) {
	if !k.vector || mode < 1 || mode >= len(predictors) {
		undoRun(pix, i, n, w, mode)
		return
	}
	_ = pix[i-w-1 : i+n]
	p := &predictors[mode]
	p.run(&pix[i], &pix[i-w-1+p.from], n)
}

// addColors is addColorsScalar.
func (k kernels) addColors(row, parts []uint32, bits int) {
	n := 0
	if k.vector {
		if n = len(row) &^ 3; n > 0 {
			_ = parts[(n-1)>>bits]
			addColors(&row[0], &parts[0], n, bits)
		}
	}
	addColorsScalar(row, parts, n, bits)
}

// Row writes red, green and blue of the pixels of row y from x on, as many as dst has three bytes for. The row is of those that Decode made.
func (d *Decoder) Row(dst []byte, x, y int) {
	pix := d.rows[y*d.width+x:][:len(dst)/3]
	green, n := uint32(0), 0
	if d.addGreen {
		green = 1<<32 - 1
	}
	if d.kernels.vector && len(dst) > rowSlack {
		if n = (len(dst) - rowSlack) / 3 &^ 7; n > 0 {
			rgbRow(&dst[0], &pix[0], n, int(int32(green)))
		}
	}
	for i, v := range pix[n:] {
		g := v >> 8
		rgb := dst[3*(n+i):][:3]
		rgb[0], rgb[1], rgb[2] = byte(v>>16+g&green), byte(g), byte(v+g&green)
	}
}

// rowSlack is how many bytes rgbRow writes behind its pixels.
const rowSlack = 4

// literals reads pixels by literals, and by the cache where that is at hand, as many as it can, and returns how many. What is left of a run is read by
// other code.
func (s *stream) literals(p *picture, g *group, colors *cache, pix []uint32, i, n int) int {
	r := &s.bits
	if !p.joins || n == 0 {
		return r.literals(g, pix[i:i+n])
	}
	if g.joint == nil {
		g.joint = s.decoder.joints.next()
		g.join()
	}
	colors.insertUpTo(pix, i)
	bits := [3]uint64{r.acc, uint64(r.bits), uint64(r.at)}
	heads := [4]*uint32{(*uint32)(&g.tables[green][0]), (*uint32)(&g.tables[red][0]), (*uint32)(&g.tables[blue][0]), (*uint32)(&g.tables[alpha][0])}
	m := readLiterals(&r.data[0], len(r.data), &bits, &heads, (*uint32)(&g.joint[0]), &colors.colors[0], colors.shift, &pix[i], n)
	r.acc, r.bits, r.at = bits[0], int(bits[1]), int(bits[2])
	colors.done = i + m
	if m == n {
		return m
	}
	return m + r.literals(g, pix[i+m:i+n])
}

// jointBits is how many bits select an entry of a joint table, and jointMiss says in an entry that there is none.
const (
	jointBits = 11
	jointMiss = 0x80
)

// leastForJoint is how many pixels a group must have on the mean for joint tables to be worth their making.
const leastForJoint = 4096

// joints are joint tables that are used again for the next picture.
type joints struct {
	tables [][]entry
	used   int
}

func (j *joints) next() []entry {
	if j.used == len(j.tables) {
		j.tables = append(j.tables, make([]entry, 1<<jointBits))
	}
	j.used++
	return j.tables[j.used-1]
}

// join makes the joint table of red, blue and alpha: what the next bits mean where they hold all three and none is longer than rootBits. An entry has
// their bits lowest, then blue, red and alpha.
func (g *group) join() {
	for i := range g.joint {
		g.joint[i] = g.joined(uint32(i))
	}
}

func (g *group) joined(bits uint32) entry {
	var sum int
	var value entry
	for _, c := range [...]struct{ code, shift int }{{red, 16}, {blue, 8}, {alpha, 24}} {
		e := g.tables[c.code][bits>>sum&(1<<rootBits-1)]
		if e.bits() > rootBits {
			return jointMiss
		}
		if sum += e.bits(); sum > jointBits {
			return jointMiss
		}
		value |= entry(e.symbol()) << c.shift
	}
	return value | entry(sum)
}
