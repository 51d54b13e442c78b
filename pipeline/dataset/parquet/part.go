package parquet

import (
	"bytes"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"
)

// Part is a page whose values have to be unpacked.
type Part struct {
	// Offset and Length in the file.
	Offset, Length int64

	codec format.CompressionCodec
	depth int
}

// Packed are the values of a part: one behind the other, and where each ends.
type Packed struct {
	Values []byte
	Ends   []int64
}

// String is all that Unpack has to know, for ParsePart.
func (p *Part) String() string {
	return fmt.Sprintf("%x-%x-%x-%x", p.Offset, p.Length, int(p.codec), p.depth)
}

// ParsePart understands what String wrote; false for all else, and for a part that is longer than is taken into memory.
func ParsePart(text string) (p Part, ok bool) {
	var codec int
	_, err := fmt.Sscanf(text, "%x-%x-%x-%x", &p.Offset, &p.Length, &codec, &p.depth)
	p.codec = format.CompressionCodec(codec)
	known := p.Offset > 0 && p.Length > 0 && p.Length <= maxPageBytes+maxHeadBytes && p.depth >= 0 && p.depth <= maxLevels
	return p, err == nil && known && p.String() == text
}

// Codec is what it is compressed with, in words.
func (p *Part) Codec() string { return p.codec.String() }

// Unpack finds the values in the bytes of a part. The same bytes are the same values, on every machine.
func (p *Part) Unpack(b []byte) (*Packed, error) {
	var h format.PageHeader
	from := bytes.NewReader(b)
	head, err := readHead(from, 0, int64(len(b)), &h)
	if err != nil {
		return nil, err
	}
	found, err := pageOf(&h, p.codec, p.depth)
	if err != nil {
		return nil, err
	}
	if found == nil || found.packed != int64(len(b))-head || found.encoding != format.Plain {
		return nil, wrong("it is another page than was listed")
	}
	found.body = head
	_, v, err := found.unpack(from)
	return v, err
}

// unpack reads a page's values, which are PLAIN.
func (p *page) unpack(from io.ReadSeeker) (levels []byte, v *Packed, err error) {
	levels, values, err := p.load(from)
	if err != nil {
		return nil, nil, err
	}
	v, err = cutValues(values, p.values)
	return levels, v, err
}

// cutValues takes values from behind their lengths, and puts them one behind the other, in the same memory.
func cutValues(b []byte, count int64) (*Packed, error) {
	if count > int64(len(b)/4) {
		return nil, wrong("it says that it has %d values", count)
	}
	v := &Packed{Values: b[:0], Ends: make([]int64, 0, count)}
	for range count {
		n, rest, ok := cutLength(b)
		if !ok || n > len(rest) {
			return nil, wrong("it ends before its last value")
		}
		v.Values = append(v.Values, rest[:n]...) // never beyond what was read
		v.Ends = append(v.Ends, int64(len(v.Values)))
		b = rest[n:]
	}
	return v, nil
}
