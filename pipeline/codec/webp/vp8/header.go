package vp8

import (
	"errors"
	"fmt"
)

// ErrData says that data is no picture, or ends before it. Every error of a Decoder about the data wraps it.
var ErrData = errors.New("no VP8 picture")

const (
	segments   = 4
	headerSize = 10
)

// segmentHeader is what section 9.3 describes.
type segmentHeader struct {
	used, mapped, absolute bool
	quantizer, strength    [segments]int32
	probabilities          [segments - 1]uint8
}

// filterHeader is what section 9.4 describes.
type filterHeader struct {
	simple           bool
	level, sharpness int32
	adjusted         bool
	forFrame         int32 // what is added to the level of a key frame
	forBlocks        int32 // and for macroblocks that are predicted by blocks of 4×4
}

// factors are a segment's quantization: for each kind of block the step of the first coefficient, and of the others.
type factors struct{ luma, second, chroma [2]int32 }

// of are those of a block of a residue.
func (f *factors) of(block int) *[2]int32 {
	switch {
	case block == secondBlock:
		return &f.second
	case block < lumaBlocks:
		return &f.luma
	}
	return &f.chroma
}

// tokenProbabilities are those of tokens: by kind of block, band of coefficients, context, and place in the tree of tokens.
type tokenProbabilities [4][8][3][11]uint8

// readHeaders reads all that comes in front of the macroblocks but for the probabilities, which follow.
func (d *Decoder) readHeaders(data []byte) error {
	if len(data) < headerSize {
		return fmt.Errorf("%w: %d bytes", ErrData, len(data))
	}
	first := int(data[0])>>5 | int(data[1])<<3 | int(data[2])<<11
	rest := data[headerSize:]
	if first > len(rest) {
		return fmt.Errorf("%w: the first partition has %d bytes of %d", ErrData, first, len(rest))
	}
	p := &d.first
	p.open(rest[:first])
	p.unsigned(2) // the color space, and whether values need to be clamped, which they always are
	d.readSegments()
	if p.over {
		return fmt.Errorf("%w: the header ends among the segments", ErrData)
	}
	d.readFilter()
	if p.over {
		return fmt.Errorf("%w: the header ends among the filters", ErrData)
	}
	if err := d.openPartitions(rest[first:]); err != nil {
		return err
	}
	d.readQuantizers()
	d.setStrengths()
	return nil
}

func (d *Decoder) readSegments() {
	p, s := &d.first, &d.segment
	*s = segmentHeader{absolute: true, probabilities: [segments - 1]uint8{255, 255, 255}}
	if s.used = p.flag(even); !s.used {
		return
	}
	s.mapped = p.flag(even)
	if p.flag(even) {
		s.absolute = p.flag(even)
		for i := range s.quantizer {
			s.quantizer[i] = p.optional(7)
		}
		for i := range s.strength {
			s.strength[i] = p.optional(6)
		}
	}
	if !s.mapped {
		return
	}
	for i := range s.probabilities {
		if p.flag(even) {
			s.probabilities[i] = uint8(p.unsigned(8))
		}
	}
}

func (d *Decoder) readFilter() {
	p := &d.first
	d.filter = filterHeader{simple: p.flag(even), level: p.unsigned(6), sharpness: p.unsigned(3)}
	f := &d.filter
	if f.adjusted = p.flag(even); !f.adjusted || !p.flag(even) {
		return
	}
	var deltas [8]int32 // by frame, then by mode
	for i := range deltas {
		deltas[i] = p.optional(6)
	}
	f.forFrame, f.forBlocks = deltas[0], deltas[4]
}

// openPartitions opens the partitions of coefficients. The last one reaches to the end of the data, and must not be empty; others that reach
// beyond it end there.
func (d *Decoder) openPartitions(data []byte) error {
	d.partitions = 1 << d.first.unsigned(2)
	sizes := 3 * (d.partitions - 1)
	if len(data) < sizes {
		return fmt.Errorf("%w: %d partitions in %d bytes", ErrData, d.partitions, len(data))
	}
	rest := data[sizes:]
	for i := range d.partitions - 1 {
		size := min(int(data[3*i])|int(data[3*i+1])<<8|int(data[3*i+2])<<16, len(rest))
		d.tokens[i].open(rest[:size])
		rest = rest[size:]
	}
	if len(rest) == 0 {
		return fmt.Errorf("%w: the last partition is empty", ErrData)
	}
	d.tokens[d.partitions-1].open(rest)
	return nil
}

// readQuantizers reads section 9.6's indices, and looks their factors up.
func (d *Decoder) readQuantizers() {
	p := &d.first
	base := p.unsigned(7)
	var deltas [5]int32 // of the first coefficient of luma; the first, and others, of second; and of chroma
	for i := range deltas {
		deltas[i] = p.optional(4)
	}
	for i := range d.factors {
		q := base
		if s := &d.segment; s.used {
			if q = s.quantizer[i]; !s.absolute {
				q += base
			}
		}
		at := func(delta, most int32) int32 { return max(0, min(q+delta, most)) }
		d.factors[i] = factors{
			luma:   [2]int32{dcFactors[at(deltas[0], 127)], acFactors[at(0, 127)]},
			second: [2]int32{2 * dcFactors[at(deltas[1], 127)], max(8, acFactors[at(deltas[2], 127)]*155/100)},
			chroma: [2]int32{dcFactors[at(deltas[3], 117)], acFactors[at(deltas[4], 127)]},
		}
	}
}

// readProbabilities reads what the modes and coefficients of macroblocks are read by.
func (d *Decoder) readProbabilities() {
	p := &d.first
	p.flag(even) // whether they are kept for another frame
	d.probabilities = defaultProbabilities
	for i := range d.probabilities {
		for j := range d.probabilities[i] {
			for k := range d.probabilities[i][j] {
				for l := range d.probabilities[i][j][k] {
					if p.flag(updateProbabilities[i][j][k][l]) {
						d.probabilities[i][j][k][l] = uint8(p.unsigned(8))
					}
				}
			}
		}
	}
	d.skips, d.skipProbability = p.flag(even), 0
	if d.skips {
		d.skipProbability = uint8(p.unsigned(8))
	}
}
