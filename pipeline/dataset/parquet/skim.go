package parquet

import (
	"encoding/binary"
	"errors"
	"io"
)

// The library that decodes Thrift takes memory for as many elements as a list says that it has. So what it is given is
// looked through before: each list has its elements, and there are not too many.

// maxElements is how many elements the lists of one struct may have, all together.
const maxElements = 1 << 21

// maxNesting is how deep structs and lists may lie in each other.
const maxNesting = 32

var errThrift = errors.New("it is not what Thrift's compact protocol writes")

// The types of the compact protocol.
const (
	thriftStop = iota
	thriftTrue
	thriftFalse
	thriftByte
	thriftInt16
	thriftInt32
	thriftInt64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
)

// skimmer walks through bytes of Thrift.
type skimmer struct {
	b        []byte
	at       int
	elements int
}

// structBytes is how long the struct is that begins b; io.ErrUnexpectedEOF where it goes on behind b.
func structBytes(b []byte) (int, error) {
	s := skimmer{b: b}
	err := s.fields(0)
	return s.at, err
}

func (s *skimmer) byte() (byte, error) {
	if s.at >= len(s.b) {
		return 0, io.ErrUnexpectedEOF
	}
	s.at++
	return s.b[s.at-1], nil
}

func (s *skimmer) number() (uint64, error) {
	v, n := binary.Uvarint(s.b[s.at:])
	switch {
	case n == 0:
		return 0, io.ErrUnexpectedEOF
	case n < 0:
		return 0, errThrift
	}
	s.at += n
	return v, nil
}

func (s *skimmer) skip(n uint64) error {
	if n > uint64(len(s.b)-s.at) {
		return io.ErrUnexpectedEOF
	}
	s.at += int(n)
	return nil
}

// fields walks through a struct.
func (s *skimmer) fields(depth int) error {
	if depth > maxNesting {
		return errThrift
	}
	for {
		head, err := s.byte()
		if err != nil || head == thriftStop {
			return err
		}
		if head>>4 == 0 { // the number of the field follows
			if _, err := s.number(); err != nil {
				return err
			}
		}
		if kind := head & 15; kind != thriftTrue && kind != thriftFalse {
			if err := s.value(kind, depth); err != nil {
				return err
			}
		}
	}
}

// value walks through one, of which a bool has a byte.
func (s *skimmer) value(kind byte, depth int) error {
	switch kind {
	case thriftTrue, thriftFalse, thriftByte:
		return s.skip(1)
	case thriftInt16, thriftInt32, thriftInt64:
		_, err := s.number()
		return err
	case thriftDouble:
		return s.skip(8)
	case thriftBinary:
		n, err := s.number()
		if err != nil {
			return err
		}
		return s.skip(n)
	case thriftList, thriftSet:
		return s.list(depth)
	case thriftStruct:
		return s.fields(depth + 1)
	}
	return errThrift // a map: Parquet has none
}

func (s *skimmer) list(depth int) error {
	head, err := s.byte()
	if err != nil {
		return err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = s.number(); err != nil {
			return err
		}
	}
	if n > uint64(maxElements-s.elements) || depth > maxNesting {
		return errThrift
	}
	s.elements += int(n)
	for ; n > 0; n-- {
		if err := s.value(head&15, depth+1); err != nil {
			return err
		}
	}
	return nil
}
