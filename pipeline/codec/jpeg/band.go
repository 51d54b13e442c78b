package jpeg

// band says what a scan of a progressive file holds: of the coefficients first to last, in the order of the file, the bits from low on;
// those from high on have been sent before, none if high is 0. It means nothing in a sequential file.
type band struct{ first, last, high, low int }

// valid reports whether libjpeg takes a scan of n components with this band.
func (b band) valid(n int) bool {
	switch {
	case b.high != 0 && b.low != b.high-1, b.low > 13:
		return false
	case b.first == 0:
		return b.last == 0
	default:
		return b.first <= b.last && b.last <= 63 && n == 1
	}
}

// mask has a bit for each coefficient of the band.
func (b band) mask() uint64 { return ^uint64(0) << b.first & (^uint64(0) >> (63 - b.last)) }

// accuracy is how many low bits of each of the first coefficients are missing, -1: none has come. Block smoothing looks at these.
type accuracy [10]int8

var unknown = accuracy{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1}

// note keeps account of a scan of the component. That the bands of the scans fit together is not asked, as in libjpeg.
func (c *component) note(b band, firstScan bool) {
	c.before = c.known
	if firstScan {
		c.before = accuracy{}
	}
	for k := b.first; k <= min(b.last, len(c.known)-1); k++ {
		c.known[k] = int8(b.low)
	}
}

// smoothed reports whether libjpeg smooths blocks of the file: a progressive one whose scans end before the low coefficients are
// exact, but not before each component has something of its first ones.
func (f *frame) smoothed() bool {
	if !f.progressive {
		return false
	}
	inexact := false
	for i := range f.n {
		c := &f.comps[i]
		if c.known[0] < 0 {
			return false
		}
		for k, missing := range c.known {
			if c.q[zigzag[k]] == 0 {
				return false
			}
			inexact = inexact || k > 0 && missing != 0
		}
	}
	return inexact
}
