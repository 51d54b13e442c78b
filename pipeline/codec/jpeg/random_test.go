package jpeg

import "math/rand/v2"

// randomDefinition is a prefix code with codes of all lengths, and symbols below limit.
func randomDefinition(r *rand.Rand, limit int) definition {
	d := make(definition, 16, 16+256)
	free, longest := 1, 4+r.IntN(13)
	for i := range longest {
		free *= 2
		n := r.IntN(min(free, 2+i*i/2))
		if i == longest-1 {
			n = free - 1
		}
		n = max(0, min(n, limit-len(d)+16, 255))
		d[i] = byte(n)
		free -= n
		for range n {
			d = append(d, byte(r.IntN(limit)))
		}
	}
	return d
}

// fill takes data: zeros and ones in runs, so that long codes come.
func (l *lane) fill(r *rand.Rand) {
	n := r.IntN(2000)
	l.segment = segment{data: make([]byte, n+segmentPad), bits: 8 * n}
	for i := range n {
		if l.segment.data[i] = byte(r.Uint32()); r.IntN(4) == 0 {
			l.segment.data[i] = byte(-r.IntN(2))
		}
	}
	l.bits = bits{}.refill(l.segment.data).drop(uint32(r.IntN(8)))
}
