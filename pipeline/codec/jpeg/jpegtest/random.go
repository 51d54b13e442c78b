package jpegtest

// random is a SplitMix64 generator.
type random struct{ state uint64 }

// newRandom gives the generator that belongs to a list of numbers.
func newRandom(key ...uint64) *random {
	r := &random{}
	for _, k := range key {
		r.state = mix(r.state ^ mix(k+golden))
	}
	return r
}

const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *random) next() uint64 {
	r.state += golden
	return mix(r.state)
}

// below gives a number from 0 to n-1.
func (r *random) below(n int) int { return int(r.next() >> 11 % uint64(n)) }

// between gives a number from low to high.
func (r *random) between(low, high int) int { return low + r.below(high-low+1) }
