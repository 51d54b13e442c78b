package exif

import (
	"bytes"
	"encoding/binary"
	"math"
)

// Types of values, by TIFF's numbers.
const (
	typeByte = iota + 1
	typeASCII
	typeShort
	typeLong
	typeRational
	typeSignedByte
	typeUndefined
	typeSignedShort
	typeSignedLong
	typeSignedRational
	typeFloat
	typeDouble
	typeIFD
	typeLong8 = 16
)

// sizes are the bytes of one value of each type; 0: no type that Pillow knows.
var sizes = [...]int64{
	typeByte: 1, typeASCII: 1, typeShort: 2, typeLong: 4, typeRational: 8, typeSignedByte: 1, typeUndefined: 1, typeSignedShort: 2,
	typeSignedLong: 4, typeSignedRational: 8, typeFloat: 4, typeDouble: 8, typeIFD: 4, typeLong8: 8,
}

// byteOrders are the beginnings that Pillow takes; two of them are mistaken.
var byteOrders = map[string]binary.ByteOrder{
	"MM\x00*": binary.BigEndian, "II*\x00": binary.LittleEndian, "MM*\x00": binary.BigEndian, "II\x00*": binary.LittleEndian,
	"MM\x00+": binary.BigEndian, // of BigTIFF, and read as the others are
}

const (
	orientationTag = 0x0112
	headerBytes    = 8
	entryBytes     = 12
)

// tag returns the orientation among EXIF data, and whether there is one; a value that is none is 0. Nothing has none.
func tag(b []byte) (v int, there bool, err error) {
	for range 2 {
		b = bytes.TrimPrefix(b, exifMark)
	}
	if len(b) == 0 {
		return 0, false, nil
	}
	order := byteOrders[string(b[:min(4, len(b))])]
	if order == nil || len(b) < headerBytes {
		return 0, false, broken("it begins with no TIFF header")
	}
	d := directory{data: b, order: order}
	v, there = d.find(int64(order.Uint32(b[4:])))
	return v, there, nil
}

// directory is TIFF data. Where an entry lies beyond it, those from there on are not read.
type directory struct {
	data  []byte
	order binary.ByteOrder
	total int64 // bytes that the entries so far have outside of the directory
}

// find returns the first value of the tag in the directory that begins at.
func (d *directory) find(at int64) (v int, there bool) {
	if at+2 > int64(len(d.data)) {
		return 0, false
	}
	entries := int(d.order.Uint16(d.data[at:]))
	for at += 2; entries > 0 && at+entryBytes <= int64(len(d.data)); entries, at = entries-1, at+entryBytes {
		entry := d.data[at : at+entryBytes]
		value, further := d.value(entry)
		if !further {
			return 0, false
		}
		if len(value) > 0 && d.order.Uint16(entry) == orientationTag {
			return d.number(int(d.order.Uint16(entry[2:])), value), true
		}
	}
	return 0, false
}

// value returns the bytes of an entry's value, none where it is left out; further is false where nothing behind it is read.
func (d *directory) value(entry []byte) (value []byte, further bool) {
	kind := int(d.order.Uint16(entry[2:]))
	if kind >= len(sizes) || sizes[kind] == 0 {
		return nil, true
	}
	size := int64(d.order.Uint32(entry[4:])) * sizes[kind]
	if size <= 4 {
		return entry[8 : 8+size], true
	}
	length := int64(len(d.data))
	if d.total += size; d.total > length {
		return nil, true
	}
	from := int64(d.order.Uint32(entry[8:]))
	if from > length || size > length-from {
		return nil, false
	}
	return d.data[from : from+size], true
}

// number is the first of an entry's values as a whole number of no more than a byte, else 0: a fraction or floating-point number that equals one
// is one; bytes and text are none.
func (d *directory) number(kind int, b []byte) int {
	switch kind {
	case typeShort, typeSignedShort:
		return int(d.order.Uint16(b)) // a negative one is large, and so is no orientation either
	case typeLong, typeSignedLong, typeIFD:
		return small(uint64(d.order.Uint32(b)))
	case typeLong8:
		return small(d.order.Uint64(b))
	case typeSignedByte:
		return int(b[0])
	case typeRational:
		return quotient(int64(d.order.Uint32(b)), int64(d.order.Uint32(b[4:])))
	case typeSignedRational:
		return quotient(int64(int32(d.order.Uint32(b))), int64(int32(d.order.Uint32(b[4:]))))
	case typeFloat:
		return whole(float64(math.Float32frombits(d.order.Uint32(b))))
	case typeDouble:
		return whole(math.Float64frombits(d.order.Uint64(b)))
	}
	return 0
}

func small(v uint64) int { return int(min(v, 255)) }

func quotient(a, b int64) int {
	if b == 0 || a%b != 0 || a/b < 0 {
		return 0
	}
	return small(uint64(a / b))
}

func whole(v float64) int {
	if v >= 0 && v <= 255 && v == math.Trunc(v) {
		return int(v)
	}
	return 0
}
