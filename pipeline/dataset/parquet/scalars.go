package parquet

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/parquet-go/parquet-go/format"
)

// Scalar is a number or bytes of a row.
type Scalar struct {
	Int int64
	// Text is the bytes as the file has them, which need not be UTF-8.
	Text string
	Null bool
}

// scalars reads a column of numbers or texts.
type scalars struct {
	file       *File
	column     *Column
	tell       func(Scalar) error
	dictionary []Scalar
	bytes      int // of a number
}

// Scalars tells of the values of a column whose kind is Int, String or Bytes, in order: one for each row of the file, as
// Locator does, or an error.
func (f *File) Scalars(c *Column, tell func(Scalar) error) error {
	s := &scalars{file: f, column: c, tell: tell}
	return f.eachPage(c, s.begin, s.page)
}

// begin begins a chunk.
func (s *scalars) begin(group int, c *chunk) error {
	s.dictionary = nil
	if s.bytes = 8; c.meta.Type == format.Int32 {
		s.bytes = 4
	}
	if text := c.meta.Type == format.ByteArray; text == (s.column.Kind == Int) {
		return wrong("group %d has another kind of values in the column %s", group, s.column)
	}
	return nil
}

// page reads one.
func (s *scalars) page(p *page) error {
	if p.encoding != format.Plain && !p.indexes() {
		return wrong("its values are written as %v, and PLAIN or a dictionary is read: %s", p.encoding, Rewrite)
	}
	levels, values, err := p.load(s.file.from)
	if err != nil {
		return err
	}
	next := s.plain(values)
	if p.indexes() {
		next = readIndexed(values, s.dictionary)
	}
	r := runs{b: levels, bits: bits.Len(uint(s.column.depth))}
	for range p.values {
		v := Scalar{Null: true}
		there := true
		if levels != nil && !p.dictionary {
			level, ok := r.next()
			if !ok {
				return wrong("its levels are cut")
			}
			there = int(level) == s.column.depth
		}
		if there {
			if v, err = next(); err != nil {
				return err
			}
		}
		if p.dictionary {
			s.dictionary = append(s.dictionary, v)
		} else if err := s.tell(v); err != nil {
			return err
		}
	}
	return nil
}

// plain reads values that are written one behind the other.
func (s *scalars) plain(b []byte) func() (Scalar, error) {
	return func() (Scalar, error) {
		if s.column.Kind != Int {
			n, rest, ok := cutLength(b)
			if !ok || n > len(rest) {
				return Scalar{}, wrong("it ends before its last value")
			}
			b = rest[n:]
			return Scalar{Text: string(rest[:n])}, nil
		}
		if len(b) < s.bytes {
			return Scalar{}, wrong("it ends before its last value")
		}
		v, err := s.number(b)
		b = b[s.bytes:]
		return Scalar{Int: v}, err
	}
}

// number is the one that bytes begin with.
func (s *scalars) number(b []byte) (int64, error) {
	switch {
	case s.bytes == 4 && s.column.unsigned:
		return int64(binary.LittleEndian.Uint32(b)), nil
	case s.bytes == 4:
		return int64(int32(binary.LittleEndian.Uint32(b))), nil
	}
	v := binary.LittleEndian.Uint64(b)
	if s.column.unsigned && v > math.MaxInt64 {
		return 0, wrong("%d in the column %s is no int64", v, s.column)
	}
	return int64(v), nil
}
