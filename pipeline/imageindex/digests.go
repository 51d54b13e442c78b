package imageindex

import "maps"

// digests are the places of files by their digests, whichever data set they are of.
type digests struct {
	places map[uint64]place
	most   int // that there were at once: a map that shrinks gives no memory back
}

// digestBytes is what a record takes in the map at most: key and place, and the room that the map keeps to grow.
const digestBytes = 38

func newDigests() *digests { return &digests{places: map[uint64]place{}} }

func (d *digests) takes(uint64) bool      { return true }
func (d *digests) of(digest uint64) place { return d.places[digest] }
func (d *digests) held() int64            { return int64(d.most) * digestBytes }
func (d *digests) like() table            { return newDigests() }

func (d *digests) set(digest uint64, to place) int64 {
	before := d.held()
	d.places[digest] = to
	d.most = max(d.most, len(d.places))
	return d.held() - before
}

func (d *digests) inSegment(segment int) bool {
	for _, at := range d.places {
		if at.segment() == segment {
			return true
		}
	}
	return false
}

// leave forgets the records of a segment.
func (d *digests) leave(segment int) {
	maps.DeleteFunc(d.places, func(_ uint64, at place) bool { return at.segment() == segment })
}

// leaveRecord forgets a record, if it is at this place.
func (d *digests) leaveRecord(digest uint64, at place) {
	if d.places[digest] == at {
		delete(d.places, digest)
	}
}
