package png

const (
	// filterPad is how many bytes behind a row unfilterInto and unfilterWave may read and write.
	filterPad = 64
	// lastFilter is the filter of the highest number.
	lastFilter = 4
	// paethFilter is that of Paeth.
	paethFilter = 4
)

// unfilterInto undoes the filter of row raw to dst, below the row prev, all of pixels of bpp bytes, 1 to 8. Behind each of the three there are
// filterPad bytes, whose contents do not matter; those of dst may change. filter is at most lastFilter.
func unfilterInto(filter byte, dst, raw, prev []byte, bpp int, vector bool) {
	if len(raw) == 0 {
		return
	}
	if vector {
		unfilterVector(filter, dst, raw, prev, bpp)
		return
	}
	copy(dst, raw)
	unfilter(filter, dst[:len(raw)], prev, bpp)
}

// unfilter undoes a row's filter. n is the bytes of a pixel, at least 1. It returns false if there is no such filter.
func unfilter(filter byte, cur, prev []byte, n int) bool {
	prev = prev[:len(cur)]
	switch filter {
	case 0:
	case 1:
		for i := n; i < len(cur); i++ {
			cur[i] += cur[i-n]
		}
	case 2:
		for i, p := range prev {
			cur[i] += p
		}
	case 3:
		for i := range min(n, len(cur)) {
			cur[i] += prev[i] / 2
		}
		for i := n; i < len(cur); i++ {
			cur[i] += byte((int(cur[i-n]) + int(prev[i])) / 2)
		}
	case 4:
		switch n {
		case 3:
			paeth3(cur, prev)
		case 4:
			paeth4(cur, prev)
		default:
			for i := range min(n, len(cur)) {
				paeth(cur[i:], prev[i:], n)
			}
		}
	default:
		return false
	}
	return true
}

// paeth undoes the filter of every n-th byte.
func paeth(cur, prev []byte, n int) {
	var left, corner int
	for i := 0; i < len(cur); i += n {
		up := int(prev[i])
		left = (nearest(left, up, corner) + int(cur[i])) & 255
		cur[i], corner = byte(left), up
	}
}

// paeth3 is paeth for pixels of three bytes, which do not wait for each other.
func paeth3(cur, prev []byte) {
	var l0, l1, l2, c0, c1, c2 int
	for i := 0; i+3 <= len(cur); i += 3 {
		p, u := cur[i:i+3:i+3], prev[i:i+3:i+3]
		u0, u1, u2 := int(u[0]), int(u[1]), int(u[2])
		l0 = (nearest(l0, u0, c0) + int(p[0])) & 255
		l1 = (nearest(l1, u1, c1) + int(p[1])) & 255
		l2 = (nearest(l2, u2, c2) + int(p[2])) & 255
		p[0], p[1], p[2] = byte(l0), byte(l1), byte(l2)
		c0, c1, c2 = u0, u1, u2
	}
}

// paeth4 is paeth for pixels of four bytes.
func paeth4(cur, prev []byte) {
	var l0, l1, l2, l3, c0, c1, c2, c3 int
	for i := 0; i+4 <= len(cur); i += 4 {
		p, u := cur[i:i+4:i+4], prev[i:i+4:i+4]
		u0, u1, u2, u3 := int(u[0]), int(u[1]), int(u[2]), int(u[3])
		l0 = (nearest(l0, u0, c0) + int(p[0])) & 255
		l1 = (nearest(l1, u1, c1) + int(p[1])) & 255
		l2 = (nearest(l2, u2, c2) + int(p[2])) & 255
		l3 = (nearest(l3, u3, c3) + int(p[3])) & 255
		p[0], p[1], p[2], p[3] = byte(l0), byte(l1), byte(l2), byte(l3)
		c0, c1, c2, c3 = u0, u1, u2, u3
	}
}

// nearest is the neighbour that is nearest to left + up − corner; of equals, the first in that order.
func nearest(left, up, corner int) int {
	a, b := up-corner, left-corner
	c := a + b
	a, b, c = max(a, -a), max(b, -b), max(c, -c)
	if b < a {
		a, left = b, up
	}
	if c < a {
		left = corner
	}
	return left
}
