package vp8l

import (
	"fmt"
	"slices"
)

// The alphabets of a group's five codes.
const (
	green = iota
	red
	blue
	alpha
	distance
	codesPerGroup
)

const (
	literals     = 256
	lengthCodes  = 24
	maxCacheBits = 11
	maxAlphabet  = literals + lengthCodes + 1<<maxCacheBits
)

// group is the codes of a part of the picture.
type group struct {
	tables  [codesPerGroup][]entry
	trivial bool   // red, blue and alpha are always the same
	rest    uint32 // then these
}

// alphabetSize is how many symbols a code has.
func alphabetSize(code, cacheBits int) int {
	switch {
	case code == distance:
		return 40
	case code != green:
		return literals
	case cacheBits > 0:
		return literals + lengthCodes + 1<<cacheBits
	}
	return literals + lengthCodes
}

// order is that of the lengths of the code of lengths.
var order = [19]uint8{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// readCode reads a code and, with store, appends its table.
func (s *stream) readCode(alphabet int, store bool) error {
	d := s.decoder
	lengths := d.lengths[:]
	clear(lengths)
	if s.bits.read(1) == 1 {
		s.readSimple(lengths)
	} else if err := s.readLengths(lengths[:alphabet]); err != nil {
		return err
	}
	if s.bits.over() {
		return fmt.Errorf("%w: it ends among the codes", ErrData)
	}
	if !d.tables.add(rootBits, lengths[:alphabet], store) { // symbols behind the alphabet are left out
		return fmt.Errorf("%w: a code that is not complete", ErrData)
	}
	return nil
}

// readSimple reads a code of one or two symbols.
func (s *stream) readSimple(lengths []uint8) {
	two := s.bits.read(1) == 1
	n := 1
	if s.bits.read(1) == 1 {
		n = 8
	}
	lengths[s.bits.read(n)] = 1
	if two {
		lengths[s.bits.read(8)] = 1
	}
}

// readLengths reads the lengths of a code's symbols, which have a code themselves.
func (s *stream) readLengths(lengths []uint8) error {
	var own [19]uint8
	for i := range 4 + s.bits.read(4) {
		own[order[i]] = uint8(s.bits.read(3))
	}
	t := &s.decoder.lengthTables
	t.entries = t.entries[:0]
	if !t.add(lengthsBits, own[:], true) {
		return fmt.Errorf("%w: a code of lengths that is not complete", ErrData)
	}
	most := len(lengths)
	if s.bits.read(1) == 1 {
		n := 2 + 2*s.bits.read(3)
		if most = 2 + s.bits.read(n); most > len(lengths) {
			return fmt.Errorf("%w: %d lengths of %d symbols", ErrData, most, len(lengths))
		}
	}
	last := uint8(8)
	for i := 0; i < len(lengths) && most > 0; most-- {
		s.bits.refill()
		e := t.entries[s.bits.acc&(1<<lengthsBits-1)]
		s.bits.drop(e.bits())
		length, repeats := uint8(e.symbol()), 1
		switch length {
		case 16:
			length, repeats = last, 3+s.bits.read(2)
		case 17:
			length, repeats = 0, 3+s.bits.read(3)
		case 18:
			length, repeats = 0, 11+s.bits.read(7)
		}
		if i+repeats > len(lengths) {
			return fmt.Errorf("%w: more lengths than symbols", ErrData)
		}
		for range repeats {
			lengths[i] = length
			i++
		}
		if length != 0 {
			last = length
		}
	}
	return nil
}

// maxEntries is how many entries the tables of a picture may have. libwebp's encoder makes 2,600 groups at the most, whose tables have 13 million.
const maxEntries = 1 << 24

// readGroups reads the codes of a picture. Those of groups that the image of groups does not name are checked, and not kept.
func (s *stream) readGroups(p *picture, meta bool) error {
	s.named = append(s.named[:0], 0)
	if meta && s.bits.read(1) == 1 {
		p.groupBits = 2 + s.bits.read(3)
		w, h := parts(p.w, p.groupBits), parts(p.h, p.groupBits)
		image, err := s.readPicture(w, h)
		if err != nil {
			return err
		}
		p.groupOf, p.groupStride = image, w
		s.nameGroups(image)
	}
	if s.bits.over() {
		return fmt.Errorf("%w: it ends before the codes", ErrData)
	}
	t := &s.decoder.tables
	t.entries = t.entries[:0] // pictures within this one have been read
	s.places = s.places[:0]
	for _, g := range s.named {
		at, err := s.readGroup(p.cacheBits, g >= 0)
		if err != nil {
			return err
		}
		if len(t.entries) > maxEntries {
			return fmt.Errorf("%w: %d entries of tables behind %d groups", ErrLimit, len(t.entries), len(s.places))
		}
		if g >= 0 {
			s.places = append(s.places, at)
		}
	}
	s.setGroups(t.entries)
	p.groups = s.groups
	return nil
}

// nameGroups replaces the pixels of the image of groups by places of groups that are kept, and notes of each index its place, less than 0 where
// no pixel has it.
func (s *stream) nameGroups(image []uint32) {
	most := 0
	for _, v := range image {
		most = max(most, int(v>>8&0xffff))
	}
	s.named = slices.Grow(s.named[:0], most+1)[:most+1]
	named := s.named
	for i := range named {
		named[i] = -1
	}
	for _, v := range image {
		named[v>>8&0xffff] = 0
	}
	next := 0
	for i, g := range named {
		if g >= 0 {
			named[i] = next
			next++
		}
	}
	for i, v := range image {
		image[i] = uint32(named[v>>8&0xffff])
	}
}

// place is where each table of a group begins among the entries, and where the last one ends.
type place [codesPerGroup + 1]int

// readGroup reads five codes and, with store, appends their tables. It returns the tables' place.
func (s *stream) readGroup(cacheBits int, store bool) (at place, err error) {
	t := &s.decoder.tables
	for code := range codesPerGroup {
		at[code] = len(t.entries)
		if err := s.readCode(alphabetSize(code, cacheBits), store); err != nil {
			return at, err
		}
	}
	at[codesPerGroup] = len(t.entries)
	return at, nil
}

// setGroups makes groups of the tables, when all of them are there and their memory moves no more.
func (s *stream) setGroups(entries []entry) {
	s.groups = s.groups[:0]
	for _, at := range s.places {
		var g group
		for code := range codesPerGroup {
			g.tables[code] = entries[at[code]:at[code+1]]
		}
		if g.trivial = g.isSingle(red) && g.isSingle(blue) && g.isSingle(alpha); g.trivial {
			first := func(code int) uint32 { return uint32(g.tables[code][0].symbol()) }
			g.rest = first(alpha)<<24 | first(red)<<16 | first(blue)
		}
		s.groups = append(s.groups, g)
	}
}

// isSingle reports whether a code has one symbol.
func (g *group) isSingle(code int) bool { return g.tables[code][0].bits() == 0 }

// parts is how many parts of 1<<bits cover n.
func parts(n, bits int) int { return (n + 1<<bits - 1) >> bits }
