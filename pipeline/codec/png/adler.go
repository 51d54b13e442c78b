package png

// adler is an Adler-32 checksum.
type adler struct{ plain, weighted uint32 }

const (
	adlerModulus = 65521
	// adlerRun is how many bytes are summed at most before the sums are taken by the modulus: a multiple of 32, below where 32 bits end.
	adlerRun = 5536
	// adlerGroup is what adlerSums takes at once.
	adlerGroup = 32
)

// newAdler is the checksum of nothing.
func newAdler() adler { return adler{plain: 1} }

// value is the checksum as a file has it.
func (a adler) value() uint32 { return a.weighted<<16 | a.plain }

// add takes further bytes.
func (a *adler) add(p []byte, vector bool) {
	if !vector {
		a.addScalar(p)
		return
	}
	for len(p) >= adlerGroup {
		n := min(len(p)&^(adlerGroup-1), adlerRun)
		sum, weighted := adlerSums(&p[0], n/adlerGroup)
		a.weighted = uint32((uint64(a.weighted) + uint64(n)*uint64(a.plain) + uint64(weighted)) % adlerModulus)
		a.plain = (a.plain + sum) % adlerModulus
		p = p[n:]
	}
	a.addScalar(p)
}

// addScalar is add in plain Go.
func (a *adler) addScalar(p []byte) {
	for len(p) > 0 {
		n := min(len(p), adlerRun)
		plain, weighted := a.plain, a.weighted
		for _, v := range p[:n] {
			plain += uint32(v)
			weighted += plain
		}
		a.plain, a.weighted = plain%adlerModulus, weighted%adlerModulus
		p = p[n:]
	}
}
