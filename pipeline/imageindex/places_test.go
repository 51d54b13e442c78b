package imageindex

import (
	"math/rand/v2"
	"testing"
)

// TestTables: they say what was set last, and tell what they take.
func TestTables(t *testing.T) {
	for _, samples := range []int{0, 1, blockSamples, 3*blockSamples + 1} {
		p := newPlaces(samples)
		if held := tryTable(t, p, samples); held > 2*HeldBytes(samples)+blockBytes {
			t.Errorf("%d samples: %d bytes", samples, held)
		}
		if p.of(uint64(samples)) != nothing || p.takes(uint64(samples)) {
			t.Errorf("of %d samples there is one more", samples)
		}
		d := newDigests()
		tryTable(t, d, samples)
		for segment := range 5 {
			before := d.held()
			if d.leave(segment); d.inSegment(segment) || d.held() != before {
				t.Errorf("segment %d is in use yet, or a map that shrinks is said to give memory back", segment)
			}
		}
	}
}

// tryTable sets a table's first keys to random places, and returns what it holds in the end.
func tryTable(t *testing.T, p table, keys int) (held int64) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	want := make([]place, keys)
	held = p.held()
	for range 20 * keys {
		at, to := r.IntN(keys), place(r.IntN(4)) // 0 to 3: none known, no record, two segments
		if to > nothing {
			to = placeIn(int(to), r.Uint32())
		}
		held += p.set(uint64(at), to)
		want[at] = to
	}
	segments := map[int]bool{}
	for at, w := range want {
		if got := p.of(uint64(at)); got != w || !p.takes(uint64(at)) {
			t.Fatalf("key %d of %d is at %#x, not %#x", at, keys, got, w)
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
	if empty := p.like(); held != p.held() || keys > 0 && empty.of(0) != 0 {
		t.Errorf("%d keys: %d bytes told of %d, and one like it is at %d", keys, held, p.held(), empty.of(0))
	}
	return held
}

// TestPlacesOfFewRecords: what they take grows with records, not with samples.
func TestPlacesOfFewRecords(t *testing.T) {
	const samples, records = 10_000_000, 10_000
	p := newPlaces(samples)
	none := p.bytes
	for at := range records {
		p.set(uint64(at*(samples/records)), placeIn(0, uint32(at)))
	}
	if none > samples/20 || p.bytes > none+200*records || p.bytes > HeldBytes(samples)/20 {
		t.Errorf("%d bytes without a record, %d with %d of %d samples", none, p.bytes, records, samples)
	}
	for at := range samples {
		p.set(uint64(at), nothing) // found to have none
	}
	if p.bytes > samples/2 {
		t.Errorf("%d bytes for %d samples without a record", p.bytes, samples)
	}
}
