package imageindex

import (
	"math/rand/v2"
	"testing"
)

// TestPlaces: they say what was set last, as a table of all samples does, and tell what they take.
func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, samples := range []int{0, 1, blockSamples, 3*blockSamples + 1} {
		p, want, held := newPlaces(samples), make([]place, samples), int64(0)
		held = p.bytes
		for range 20 * samples {
			at, to := r.IntN(samples), place(r.IntN(4)) // 0 to 3: none known, no record, two segments
			if to > nothing {
				to = placeIn(int(to), r.Uint32())
			}
			held += p.set(at, to)
			want[at] = to
		}
		segments := map[int]bool{}
		for at, w := range want {
			if got := p.of(at); got != w {
				t.Fatalf("sample %d of %d is at %#x, not %#x", at, samples, got, w)
			}
			if w > nothing {
				segments[w.segment()] = true
			}
		}
		for segment := range 5 {
			if p.inSegment(segment) != segments[segment] {
				t.Errorf("segment %d is in use: %v", segment, !segments[segment])
			}
		}
		if p.of(-1) != nothing || p.of(samples) != nothing || held != p.bytes || held > 2*HeldBytes(samples)+blockBytes {
			t.Errorf("%d samples: places outside are %d and %d, %d bytes told of %d", samples, p.of(-1), p.of(samples), held, p.bytes)
		}
	}
}

// TestPlacesOfFewRecords: what they take grows with records, not with samples.
func TestPlacesOfFewRecords(t *testing.T) {
	const samples, records = 10_000_000, 10_000
	p := newPlaces(samples)
	none := p.bytes
	for at := range records {
		p.set(at*(samples/records), placeIn(0, uint32(at)))
	}
	if none > samples/20 || p.bytes > none+200*records || p.bytes > HeldBytes(samples)/20 {
		t.Errorf("%d bytes without a record, %d with %d of %d samples", none, p.bytes, records, samples)
	}
	for at := range samples {
		p.set(at, nothing) // found to have none
	}
	if p.bytes > samples/2 {
		t.Errorf("%d bytes for %d samples without a record", p.bytes, samples)
	}
}
