package png

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
		for i := range min(n, len(cur)) {
			paeth(cur[i:], prev[i:], n)
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
		a, b := up-corner, left-corner
		c := abs(a + b)
		a, b = abs(a), abs(b)
		switch {
		case a <= b && a <= c:
		case b <= c:
			left = up
		default:
			left = corner
		}
		left = (left + int(cur[i])) & 255
		cur[i], corner = byte(left), up
	}
}

func abs(v int) int {
	sign := v >> 63
	return (v ^ sign) - sign
}
