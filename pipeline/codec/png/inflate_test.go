package png

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"testing"
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
		d := NewDecoder()
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
