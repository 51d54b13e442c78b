package imageindex

import (
	"math/bits"
	"slices"
	"unsafe"
)

// place is where a record is: of a segment, counted from 1, the offset in its records. 0: there is none.
type place uint64

// nothing is the place of a key that has no record, which was found out.
const nothing place = 1

func placeIn(segment int, offset uint32) place { return place(segment+1)<<32 | place(offset) }
func (p place) segment() int                   { return int(p>>32) - 1 }
func (p place) offset() int                    { return int(uint32(p)) }

// table finds places by keys: numbers of samples, or digests of files.
type table interface {
	// takes reports whether a record may have this key.
	takes(key uint64) bool
	// of is the place of a key; nothing where it takes no such key.
	of(key uint64) place
	// set notes the place of a key that it takes, and returns by how many bytes the memory grew.
	set(key uint64, to place) (grown int64)
	// inSegment reports whether a record of a segment is in use.
	inSegment(segment int) bool
	// held is how many bytes of memory it takes.
	held() int64
	// like returns an empty one for the same keys.
	like() table
}

// places are those of a data set's samples. They take memory for the records that there are, and hardly any for samples
// without one.
type places struct {
	samples int
	blocks  []*placeBlock // nil: of none of its samples is anything known
	bytes   int64         // of memory
}

// blockSamples is how many samples a block is about.
const blockSamples = 256

// placeBlock has the places of some samples.
type placeBlock struct {
	records, without sampleSet
	found            []place // of records, in the order of samples
}

// blockBytes is what a block takes without what it has found.
const blockBytes = int64(unsafe.Sizeof(placeBlock{}) + unsafe.Sizeof((*placeBlock)(nil)))

func newPlaces(samples int) *places {
	p := &places{samples: samples, blocks: make([]*placeBlock, (samples+blockSamples-1)/blockSamples)}
	p.bytes = int64(len(p.blocks)) * int64(unsafe.Sizeof(p.blocks[0]))
	return p
}

func (p *places) takes(sample uint64) bool { return sample < uint64(p.samples) }
func (p *places) held() int64              { return p.bytes }
func (p *places) like() table              { return newPlaces(p.samples) }

func (p *places) of(sample uint64) place {
	if !p.takes(sample) {
		return nothing
	}
	b, at := p.blocks[sample/blockSamples], int(sample%blockSamples)
	switch {
	case b == nil:
		return 0
	case b.records.has(at):
		return b.found[b.records.before(at)]
	case b.without.has(at):
		return nothing
	}
	return 0
}

func (p *places) set(sample uint64, to place) int64 {
	before := p.bytes
	block, at := &p.blocks[sample/blockSamples], int(sample%blockSamples)
	if *block == nil {
		*block = &placeBlock{}
		p.bytes += int64(unsafe.Sizeof(placeBlock{}))
	}
	b := *block
	room := cap(b.found)
	b.set(at, to)
	p.bytes += int64(cap(b.found)-room) * int64(unsafe.Sizeof(to))
	return p.bytes - before
}

func (b *placeBlock) set(at int, to place) {
	k, had := b.records.before(at), b.records.has(at)
	b.without.put(at, to == nothing)
	b.records.put(at, to > nothing)
	switch {
	case to <= nothing && had:
		b.found = slices.Delete(b.found, k, k+1)
	case to <= nothing:
	case had:
		b.found[k] = to
	default:
		b.found = slices.Insert(b.found, k, to)
	}
}

func (p *places) inSegment(segment int) bool {
	for _, b := range p.blocks {
		if b != nil && slices.ContainsFunc(b.found, func(one place) bool { return one.segment() == segment }) {
			return true
		}
	}
	return false
}

// sampleSet is a set of samples of a block.
type sampleSet [blockSamples / 64]uint64

func (s *sampleSet) has(at int) bool { return s[at/64]>>(at%64)&1 != 0 }

func (s *sampleSet) put(at int, in bool) {
	if s[at/64] &^= 1 << (at % 64); in {
		s[at/64] |= 1 << (at % 64)
	}
}

// before is how many come before a sample.
func (s *sampleSet) before(at int) int {
	n := bits.OnesCount64(s[at/64] & (1<<(at%64) - 1))
	for _, word := range s[:at/64] {
		n += bits.OnesCount64(word)
	}
	return n
}
