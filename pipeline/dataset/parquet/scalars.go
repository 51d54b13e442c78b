package parquet

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"strings"

	"github.com/parquet-go/parquet-go/format"
)

// Scalar is a number or a text of a row.
type Scalar struct {
	Int  int64
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

// Scalars tells of the values of a column whose kind is Int or String, in order.
func (f *File) Scalars(c *Column, tell func(Scalar) error) error {
	s := &scalars{file: f, column: c, tell: tell}
	for group := range f.meta.RowGroups {
		chunk, err := f.chunk(group, c)
		if err != nil {
			return err
		}
		s.dictionary = nil
		if s.bytes = 8; chunk.meta.Type == format.Int32 {
			s.bytes = 4
		}
		if text := chunk.meta.Type == format.ByteArray; text != (c.Kind == String) {
			return wrong("group %d has another kind of values in the column %s", group, c)
		}
		for {
			p, err := chunk.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				err = s.page(p)
			}
			if err != nil {
				return chunk.failed(err)
			}
		}
	}
	return nil
}

// page reads one.
func (s *scalars) page(p *page) error {
	if p.encoding != format.Plain && !p.indexes() {
		return wrong("its values are written as %v, and PLAIN or a dictionary is read", p.encoding)
	}
	levels, values, err := p.load(s.file.from)
	if err != nil {
		return err
	}
	next := s.plain(values)
	if p.indexes() {
		next = s.indexed(values)
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
		if s.column.Kind == String {
			n, rest, ok := cutLength(b)
			if !ok || n > len(rest) {
				return Scalar{}, wrong("it ends before its last value")
			}
			b = rest[n:]
			return Scalar{Text: strings.ToValidUTF8(string(rest[:n]), "\ufffd")}, nil
		}
		if len(b) < s.bytes {
			return Scalar{}, wrong("it ends before its last value")
		}
		v := int64(int32(binary.LittleEndian.Uint32(b)))
		if s.bytes == 8 {
			v = int64(binary.LittleEndian.Uint64(b))
		}
		b = b[s.bytes:]
		return Scalar{Int: v}, nil
	}
}

// indexed reads numbers of values of the dictionary.
func (s *scalars) indexed(b []byte) func() (Scalar, error) {
	var r *runs
	return func() (Scalar, error) {
		if r == nil {
			if len(b) == 0 || b[0] > 32 {
				return Scalar{}, wrong("its numbers are cut")
			}
			r = &runs{b: b[1:], bits: int(b[0])}
		}
		i, ok := r.next()
		if !ok || int64(i) >= int64(len(s.dictionary)) {
			return Scalar{}, wrong("it has the number %d in a dictionary of %d", i, len(s.dictionary))
		}
		return s.dictionary[i], nil
	}
}
