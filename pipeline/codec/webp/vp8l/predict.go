package vp8l

const black = 0xff000000

// undoPrediction adds to each pixel what is predicted of it.
func (t *transform) undoPrediction(pix []uint32, k kernels) {
	w := t.w
	pix[0] = add(pix[0], black)
	for x := 1; x < w; x++ {
		pix[x] = add(pix[x], pix[x-1])
	}
	stride, rows := parts(w, t.bits), len(pix)/w
	for y := 1; y < rows; {
		end := min((y|(rowsAtOnce-1))+1, rows)
		t.undoRows(pix, y, end, t.data[y>>t.bits*stride:][:stride], k)
		y = end
	}
}

// rowsAtOnce is of how many rows predictions are undone in turns. No part has fewer.
const rowsAtOnce = 4

// undoRows is undoPrediction for rows y to end−1, whose parts have the modes of. A row is one part behind that above it, of which it takes a pixel further to
// the right: so the processor has two or more at hand that do not wait for each other, while in each a pixel waits for the one before.
func (t *transform) undoRows(pix []uint32, y, end int, of []uint32, k kernels) {
	for turn := range len(of) + end - y - 1 {
		first := max(0, turn-len(of)+1)
		for row := first; row <= min(turn, end-y-1); row++ {
			part := turn - row
			t.undoPart(pix, y+row, part<<t.bits, int(of[part]>>8&15), k)
		}
	}
}

// undoPart is undoPrediction for the pixels of row y of the part that begins in column x.
func (t *transform) undoPart(pix []uint32, y, x, mode int, k kernels) {
	end, row := min(x+(1<<t.bits), t.w), y*t.w
	if x == 0 {
		pix[row] = add(pix[row], pix[row-t.w])
		x++
	}
	if x < end {
		k.predict(pix, row+x, end-x, t.w, mode)
	}
}

// undoRun is undoPrediction for n pixels from i on, all by the same mode.
func undoRun(pix []uint32, i, n, w, mode int) {
	run := pix[i : i+n]
	above := pix[i-w-1 : i-w+n+1] // corner, above, and to the right
	left := pix[i-1]
	above = above[:len(run)+2]
	for k, v := range run {
		corner, up, right := above[k], above[k+1], above[k+2]
		var p uint32
		switch mode {
		case 1:
			p = left
		case 2:
			p = up
		case 3:
			p = right
		case 4:
			p = corner
		case 5:
			p = mean(mean(left, right), up)
		case 6:
			p = mean(left, corner)
		case 7:
			p = mean(left, up)
		case 8:
			p = mean(corner, up)
		case 9:
			p = mean(up, right)
		case 10:
			p = mean(mean(left, corner), mean(up, right))
		case 11:
			p = nearer(up, left, corner)
		case 12:
			p = continued(left, up, corner)
		case 13:
			p = continuedByHalf(mean(left, up), corner)
		default:
			p = black
		}
		left = add(v, p)
		run[k] = left
	}
}

// add adds the bytes of two pixels.
func add(a, b uint32) uint32 {
	return (a&0xff00ff00+b&0xff00ff00)&0xff00ff00 | (a&0xff00ff+b&0xff00ff)&0xff00ff
}

// mean is the means of two pixels' bytes, rounded down.
func mean(a, b uint32) uint32 { return (a^b)&0xfefefefe>>1 + a&b }

// nearer is the one of a and b that is nearer to a + b − c.
func nearer(a, b, c uint32) uint32 {
	sum := int32(0)
	for shift := 0; shift < 32; shift += 8 {
		x, y, z := int32(a>>shift&0xff), int32(b>>shift&0xff), int32(c>>shift&0xff)
		sum += max(y-z, z-y) - max(x-z, z-x)
	}
	if sum <= 0 {
		return a
	}
	return b
}

// continued is a + b − c, byte by byte, within a byte.
func continued(a, b, c uint32) (p uint32) {
	for shift := 0; shift < 32; shift += 8 {
		v := int32(a>>shift&0xff) + int32(b>>shift&0xff) - int32(c>>shift&0xff)
		p |= uint32(max(0, min(v, 255))) << shift
	}
	return p
}

// continuedByHalf is a + (a − b) ÷ 2, byte by byte, within a byte.
func continuedByHalf(a, b uint32) (p uint32) {
	for shift := 0; shift < 32; shift += 8 {
		x, y := int32(a>>shift&0xff), int32(b>>shift&0xff)
		p |= uint32(max(0, min(x+(x-y)/2, 255))) << shift
	}
	return p
}
