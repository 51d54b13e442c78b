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
