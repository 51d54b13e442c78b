package png

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// nowhere is a sink.
type nowhere struct{}

func (nowhere) Rows([]byte, int, int) {}

func chunkOf(name string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, name...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// spread is a black pixel whose data has n further chunks behind its first byte, and some behind it.
func spread(n int, further []byte) []byte {
	const data = "\x78\x01\x63\x60\x00\x00\x00\x02\x00\x01"
	b := append([]byte(Signature), chunkOf("IHDR", []byte{0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0})...)
	b = append(b, chunkOf("IDAT", []byte(data[:1]))...)
	b = append(b, bytes.Repeat(chunkOf("IDAT", nil), n)...)
	b = append(b, chunkOf("IDAT", []byte(data[1:]))...)
	b = append(b, bytes.Repeat(chunkOf("IDAT", further), n)...)
	return append(b, chunkOf("IEND", nil)...)
}

// Files of very many data chunks: those without data take no memory, and that of others is given back.
func TestManyChunks(t *testing.T) {
	const n = keptParts + 1
	for _, further := range [][]byte{nil, {0}} {
		d := NewDecoder(kernel.Levels()[0])
		if _, _, err := d.Parse(spread(n, further)); err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(image.Rect(0, 0, 1, 1), nowhere{}); err != nil {
			t.Errorf("further chunks of %d bytes: %v", len(further), err)
		}
		if len(further) == 0 && len(d.data.parts) != 2 || cap(d.data.parts) > (2<<20) {
			t.Errorf("further chunks of %d bytes: %d parts, room for %d", len(further), len(d.data.parts), cap(d.data.parts))
		}
	}
}

// black is a grey picture of a pixel's width, of chunks of data and what follows them.
func black(height byte, after []byte, data ...string) []byte {
	b := append([]byte(Signature), chunkOf("IHDR", []byte{0, 0, 0, 1, 0, 0, 0, height, 8, 0, 0, 0, 0})...)
	for _, d := range data {
		b = append(b, chunkOf("IDAT", []byte(d))...)
	}
	return append(b, after...)
}

// What follows the last row counts where it lies in the piece in which the last row became complete, and nowhere else. Pillow 13 says the same of each of these.
func TestBehindTheLastRow(t *testing.T) {
	const (
		row       = "\x78\x01\x63\x60\x00"         // two zeros, and the first bits of the end
		rows      = "\x78\x01\x63\x60\x60\x60\x00" // four zeros, as row
		end       = "\x00"
		sum       = "\x00\x02\x00\x01"
		wrong     = "\x00\x02\x00\x02"
		far       = "\x78\x01\x63\x60\x00\x62\x00"                 // two zeros, and a copy from before them
		zero      = "\x78\x01\x63\x60\x60\x18\x03"                 // three zeros, and a code that is none
		lengths   = "\x78\x01\x63\x60\x00\x00\x02\x00\x02\x00\x00" // two zeros, and a block whose lengths contradict
		senseless = "\x78\x01\x63\x60\x18\x03"                     // two zeros, and a code that is none
	)
	iend := chunkOf("IEND", nil)
	cut := chunkOf("IDAT", []byte(end+sum))[:10]
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"whole":                                  {black(1, iend, row+end+sum), nil},
		"another sum":                            {black(1, iend, row+end+wrong), ErrBroken},
		"another sum in the next piece":          {black(1, iend, row+end, wrong), nil},
		"end and another sum in the next piece":  {black(1, iend, row, end+wrong), nil},
		"end in the next piece":                  {black(1, iend, row, end+sum), nil},
		"end in a piece that is cut":             {black(1, cut, row), ErrTruncated},
		"end in a piece behind two":              {black(1, iend, row[:3], row[3:4], row[4:], end, wrong), nil},
		"two rows, end in the next piece":        {black(2, iend, rows, end+"\x00\x04\x00\x02"), nil},
		"two rows, one is there":                 {black(2, iend, row+end+sum), nil},
		"two rows, one is there, another sum":    {black(2, iend, row+end+wrong), ErrBroken},
		"two rows, one is there, and ends apart": {black(2, iend, row, end+sum), ErrTruncated},
		"two rows, one is there, the sum apart":  {black(2, iend, row+end, sum), ErrTruncated},
		"too far back":                           {black(1, iend, far), nil},
		"senseless":                              {black(1, iend, senseless), ErrBroken},
		"senseless behind a further byte":        {black(1, iend, zero), nil},
		"contradictory lengths":                  {black(1, iend, lengths), ErrBroken},
		"senseless in the next piece":            {black(1, iend, senseless[:5], senseless[5:]), nil},
	} {
		d := NewDecoder(kernel.Levels()[0])
		if _, _, err := d.Parse(c.file); err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(image.Rect(0, 0, 1, 1), nowhere{}); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// Where too much would have to be decompressed again to find the last row's piece, the data's last one stands for it: this file is refused, though Pillow takes it.
func TestTooManyPieces(t *testing.T) {
	parts := []string{"\x78\x01"}
	for range againBytes / countBytes {
		parts = append(parts, "\x00\x00\x00\xff\xff") // an empty block
	}
	d := NewDecoder(kernel.Levels()[0])
	if _, _, err := d.Parse(black(1, chunkOf("IEND", nil), append(parts, "\x63\x60\x00", "\x00\x00\x02\x00\x02")...)); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(image.Rect(0, 0, 1, 1), nowhere{}); !errors.Is(err, ErrBroken) {
		t.Errorf("%v, want %v", err, ErrBroken)
	}
}

// Data counts symbol by symbol, and blocks without compression byte by byte.
func TestBecomes(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want int
	}{
		"nothing":                  {"", 0},
		"a literal and the end":    {"\x63\x00\x00", 1},
		"a literal, to its bits":   {"\x63\x00", 1},
		"a literal, but for a bit": {"\x63", 0},
		"stored":                   {"\x01\x05\x00\xfa\xffabcde", 5},
		"stored, cut":              {"\x01\x05\x00\xfa\xffabc", 3},
		"stored, cut, not last":    {"\x00\x05\x00\xfa\xffabc", 3},
		"stored, lengths cut":      {"\x00\x05\x00\xfa", 0},
		"stored, contradictory":    {"\x00\x05\x00\xfa\xfeabcde", 0},
		"stored, then a literal":   {"\x00\x01\x00\xfe\xffa\x63\x00\x00", 2},
		"behind the last block":    {"\x63\x00\x00\x63\x00\x00", 1},
		"no kind of block":         {"\x07\x00\x00", 0},
	} {
		if got := becomes([]byte(c.data), 1000); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := becomes([]byte("\x01\x05\x00\xfa\xffabcde"), 2); got < 2 {
		t.Errorf("of 2 that are asked for: %d", got)
	}
}
