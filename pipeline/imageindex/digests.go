package imageindex

import "maps"

// digests are the places of files by their digests, whichever data set they are of.
type digests map[uint64]place

// digestBytes is about what a record takes in the map: key and place, and the room that the map keeps to grow.
const digestBytes = 26

func (d digests) takes(uint64) bool      { return true }
func (d digests) of(digest uint64) place { return d[digest] }
func (d digests) held() int64            { return int64(len(d)) * digestBytes }
func (d digests) like() table            { return digests{} }

func (d digests) set(digest uint64, to place) int64 {
	before := d.held()
	d[digest] = to
	return d.held() - before
}

func (d digests) inSegment(segment int) bool {
	for _, at := range d {
		if at.segment() == segment {
			return true
		}
	}
	return false
}

// leave forgets the records of a segment, and returns by how many bytes the memory shrank.
func (d digests) leave(segment int) int64 {
	before := d.held()
	maps.DeleteFunc(d, func(_ uint64, at place) bool { return at.segment() == segment })
	return before - d.held()
}
