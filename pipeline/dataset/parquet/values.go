package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/parquet-go/parquet-go/format"
)

// String is the column's name, with dots between its levels.
func (c *Column) String() string { return strings.Join(c.Path, ".") }

// NullError says that a row has nothing in a column.
type NullError struct {
	// Row of the file.
	Row int64
}

// Error names the row.
func (e *NullError) Error() string { return fmt.Sprintf("row %d has none", e.Row) }

// Found is where a value lies.
type Found struct {
	// Part that it is in, or nil: then it is a range of the file as it is.
	Part *Part
	// Offset and Size: of the part's values, one behind the other, or of the file.
	Offset, Size int64
}

// Locator says where a column's values lie.
type Locator struct {
	// File that has it.
	File *File
	// Column whose kind is Bytes or String.
	Column *Column
	// Tell is told of each row's value, in order. Its error ends Locate.
	Tell func(row int64, v Found) error
	// Unpacked is told of each part, before values in it. Its error ends Locate.
	Unpacked func(p *Part, v *Packed) error

	row        int64
	dictionary []Found
}

// Locate finds all values. A row without one is a *NullError.
func (l *Locator) Locate() error {
	begin := func(int, *chunk) error {
		l.dictionary = nil
		return nil
	}
	return l.File.eachPage(l.Column, begin, l.page)
}

// page finds the values of one.
func (l *Locator) page(p *page) error {
	switch {
	case p.isPlain():
		return l.plainPage(p)
	case p.indexes():
		return l.indexPage(p)
	case p.encoding == format.Plain:
		return l.packedPage(p)
	}
	return wrong("its values are written as %v, and PLAIN or a dictionary is read: %s", p.encoding, Rewrite)
}

// plainPage finds values that lie in the file as they are: behind their lengths, which alone are read.
func (l *Locator) plainPage(p *page) error {
	at, end := p.body, p.body+p.packed
	if p.levels != 0 {
		n, err := l.plainLevels(p)
		if err != nil {
			return err
		}
		at += n
	}
	for range p.values {
		if end-at < 4 {
			return wrong("it ends before its last value")
		}
		head, err := readRange(l.File.from, at, 4)
		if err != nil {
			return err
		}
		at += 4
		size := int64(binary.LittleEndian.Uint32(head))
		if size > end-at {
			return wrong("a value of %d bytes does not lie in it", size)
		}
		if err := l.found(p, Found{Offset: at, Size: size}); err != nil {
			return err
		}
		at += size
	}
	return nil
}

// plainLevels checks the levels in front of a page's values, and returns how long they are.
func (l *Locator) plainLevels(p *page) (int64, error) {
	at, n, head := p.body, p.levels, int64(0)
	if n < 0 {
		b, err := readRange(l.File.from, at, min(4, p.packed))
		length, _, ok := cutLength(b)
		if err != nil || !ok {
			return 0, errors.Join(err, wrong("its levels are cut"))
		}
		n, head = int64(length), 4
	}
	if n > p.packed-head || n > p.values*maxLevels+1<<10 {
		return 0, wrong("it says that its levels have %d bytes", n)
	}
	levels, err := readRange(l.File.from, at+head, n)
	if err == nil {
		err = l.checkLevels(levels, p.values)
	}
	return head + n, err
}

// found takes note of a value: of the dictionary, or of the next row.
func (l *Locator) found(p *page, v Found) error {
	if p.dictionary {
		l.dictionary = append(l.dictionary, v)
		return nil
	}
	l.row++
	return l.Tell(l.row-1, v)
}

// packedPage unpacks a page, and finds values in it.
func (l *Locator) packedPage(p *page) error {
	part := &Part{Offset: p.begin, Length: p.body - p.begin + p.packed, codec: p.codec, depth: l.Column.depth}
	if p.dictionary {
		part.depth = 0
	}
	levels, packed, err := p.unpack(l.File.from)
	if err == nil && levels != nil {
		err = l.checkLevels(levels, p.values)
	}
	if err == nil {
		err = l.Unpacked(part, packed)
	}
	if err != nil {
		return err
	}
	begin := int64(0)
	for _, end := range packed.Ends {
		if err := l.found(p, Found{Part: part, Offset: begin, Size: end - begin}); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

// indexPage finds the values of a page of numbers in the dictionary.
func (l *Locator) indexPage(p *page) error {
	levels, values, err := p.load(l.File.from)
	if err == nil && levels != nil {
		err = l.checkLevels(levels, p.values)
	}
	if err != nil {
		return err
	}
	next := readIndexed(values, l.dictionary)
	for range p.values {
		v, err := next()
		if err == nil {
			err = l.found(p, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readIndexed reads numbers of values of a dictionary: each call is the next value.
func readIndexed[T any](b []byte, dictionary []T) func() (T, error) {
	var r *runs
	return func() (v T, err error) {
		if r == nil {
			if len(b) == 0 || b[0] > 32 {
				return v, wrong("its numbers are cut")
			}
			r = &runs{b: b[1:], bits: int(b[0])}
		}
		i, ok := r.next()
		if !ok || int64(i) >= int64(len(dictionary)) {
			return v, wrong("it has the number %d in a dictionary of %d", i, len(dictionary))
		}
		return dictionary[i], nil
	}
}

// checkLevels reports the first row that has no value.
func (l *Locator) checkLevels(b []byte, count int64) error {
	r := runs{b: b, bits: bits.Len(uint(l.Column.depth))}
	for i := range count {
		v, ok := r.next()
		if !ok {
			return wrong("its levels are cut")
		}
		if int(v) != l.Column.depth {
			return &NullError{Row: l.row + i}
		}
	}
	return nil
}

// cutLength cuts the length off a value.
func cutLength(b []byte) (int, []byte, bool) {
	if len(b) < 4 {
		return 0, nil, false
	}
	n := binary.LittleEndian.Uint32(b)
	return int(n), b[4:], true
}
