// Package vp8l decodes the lossless pictures of WebP files (the WebP Lossless Bitstream Specification). It makes the pixels that libwebp makes, and
// refuses what libwebp refuses, also of damaged data. It starts no goroutine.
package vp8l

import (
	"errors"
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// The verdicts. Every error of a Decoder wraps one of them.
var (
	// ErrData: the data is no picture, or ends before it.
	ErrData = errors.New("no lossless WebP picture")
	// ErrLimit: more tables of codes than maxEntries, which libwebp does not limit.
	ErrLimit = errors.New("too many codes for a WebP picture")
)

// Decoder decodes one picture after the other. It takes 4 bytes for each pixel, as much for each sixteenth pixel and transform, and up to 150 MiB
// while tables of codes grow. It keeps its memory for the next picture, see Trim. It is not safe for concurrent use.
type Decoder struct {
	stream       stream
	within       words // of pictures within the one that is decoded
	kernels      kernels
	pix          []uint32
	rows         []uint32 // of pix, as Row shows them
	width        int      // of a row
	addGreen     bool     // Row adds green to red and blue
	joints       []joint
	tables       tables
	lengthTables tables
	lengths      [maxAlphabet]uint8
	colors       [1<<maxCacheBits + literals]uint32 // of the cache; those behind it nobody uses
}

// NewDecoder returns a decoder that runs the kernels of the level.
func NewDecoder(level string) *Decoder { return &Decoder{kernels: kernels{kernel.Vector(level)}} }

// headerSize is how many bytes of a picture's data come before it, which the container has read.
const headerSize = 5

// Decode decodes a picture of w×h pixels, 1 to 16384 each, from the data of its chunk. Row gives the first rows of it, 1 to h, until the next call. Data
// that only lower ones need is parsed where rest is set, for its errors alone, and else not looked at.
func (d *Decoder) Decode(data []byte, w, h, rows int, rest bool) error {
	if len(data) < headerSize {
		return fmt.Errorf("%w: %d bytes", ErrData, len(data))
	}
	s := d.open(data)
	defer s.close()
	s.bits.read(16)
	s.bits.read(24)
	p := picture{w: w, h: h}
	parsed := h
	if !rest {
		parsed = rows
	}
	if err := s.readMain(&p, false, parsed); err != nil {
		return err
	}
	d.rows, d.width = s.undo(d.pix[:p.w*rows], rows), w
	return nil
}

// CheckAlpha decides whether transparency of w×h pixels decodes from its data, which is that of a picture without a header.
func (d *Decoder) CheckAlpha(data []byte, w, h int) error {
	s := d.open(data)
	defer s.close()
	return s.readMain(&picture{w: w, h: h}, true, h)
}

// stream is a picture's data while it is read.
type stream struct {
	decoder    *Decoder
	bits       bitReader
	transforms []transform
	seen       [transformKinds]bool
	forgiving  bool // the last symbol may lack bits
	// Memory of the codes of the picture that is read: of those within this one nobody needs them any more.
	named  []int
	places []place
	groups []group
}

// open begins with a picture's data, in the memory of the one before.
func (d *Decoder) open(data []byte) *stream {
	s := &d.stream
	*s = stream{decoder: d, transforms: s.transforms[:0], named: s.named, places: s.places, groups: s.groups}
	s.bits.open(data)
	d.within.reset()
	return s
}

// close lets go of the data, which are the caller's.
func (s *stream) close() { s.bits = bitReader{} }

// Trim lets go of memory for more than so many pixels, and for more entries of tables than half of them.
func (d *Decoder) Trim(most int) {
	if cap(d.pix) > most {
		d.pix, d.rows, d.joints = nil, nil, nil
	}
	// Codes of a small picture, or of one that breaks off among them, may take more memory than pixels. Groups refer to tables.
	if s := &d.stream; cap(d.within.all) > most/4 || cap(s.groups) > most/1024 || cap(d.tables.entries) > most/2 {
		d.stream, d.within, d.tables.entries = stream{}, words{}, nil
	}
}

// readMain reads the transforms of the main picture, and the pixels of its first rows as these left them, into the decoder's memory, which has room for the pixels of
// a picture without transforms. A transform may make the picture narrower.
func (s *stream) readMain(p *picture, isAlpha bool, rows int) error {
	w, h := p.w, p.h
	for s.bits.read(1) == 1 {
		if err := s.readTransform(p); err != nil {
			return err
		}
	}
	if err := s.readCodes(p, true); err != nil {
		return err
	}
	if cap(s.decoder.pix) < w*h {
		s.decoder.pix = make([]uint32, w*h)
	}
	// libwebp reads transparency that is an index of colors by other code, which does not mind that the last symbol lacks bits.
	s.forgiving = isAlpha && len(s.transforms) == 1 && s.transforms[0].kind == indexing && p.cacheBits == 0 && p.isTrivial()
	if !s.readPixels(p, s.decoder.pix[:p.w*h], p.w*rows) {
		return fmt.Errorf("%w: the pixels do not decode", ErrData)
	}
	return nil
}

// undo undoes the transforms of a picture's first rows, the last transform first, but for green that Row adds. No row depends on one below it.
func (s *stream) undo(pix []uint32, rows int) []uint32 {
	d := s.decoder
	d.addGreen = len(s.transforms) > 0 && s.transforms[0].kind == subtractGreen
	for i := len(s.transforms) - 1; i >= 0; i-- {
		if i > 0 || !d.addGreen {
			pix = s.transforms[i].undo(pix, rows, d.kernels)
		}
	}
	return pix
}

// isTrivial reports whether red, blue and alpha are the same wherever one group is in use.
func (p *picture) isTrivial() bool {
	for i := range p.groups {
		if !p.groups[i].trivial {
			return false
		}
	}
	return true
}

// readPicture reads a picture within another one's data.
func (s *stream) readPicture(w, h int) ([]uint32, error) {
	p := picture{w: w, h: h}
	if err := s.readCodes(&p, false); err != nil {
		return nil, err
	}
	pix := s.decoder.within.take(w * h)
	if !s.readPixels(&p, pix, len(pix)) {
		return nil, fmt.Errorf("%w: a picture within does not decode", ErrData)
	}
	return pix, nil
}

// readCodes reads what comes in front of a picture's pixels.
func (s *stream) readCodes(p *picture, meta bool) error {
	if s.bits.read(1) == 1 {
		if p.cacheBits = s.bits.read(4); p.cacheBits < 1 || p.cacheBits > maxCacheBits {
			return fmt.Errorf("%w: a cache of %d bits", ErrData, p.cacheBits)
		}
	}
	return s.readGroups(p, meta)
}
