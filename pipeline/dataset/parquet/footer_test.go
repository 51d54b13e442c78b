package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
)

// widen makes a file's footer so many bytes longer, by a field that nobody knows, and puts so many bytes in front of it.
func widen(data []byte, more, front int) []byte {
	end := len(data) - tailBytes
	footer := data[end-int(binary.LittleEndian.Uint32(data[end:])) : end-1] // without the byte that ends the struct
	wide := append(bytes.Clone(data[:end-len(footer)-1]), make([]byte, front)...)
	begin := len(wide)
	wide = binary.AppendUvarint(append(wide, footer...), thriftBinary)
	wide = binary.AppendUvarint(binary.AppendUvarint(wide, 2*1000), uint64(more))
	wide = append(append(wide, make([]byte, more)...), thriftStop)
	return append(binary.LittleEndian.AppendUint32(wide, uint32(len(wide)-begin)), magic...)
}

// countedReads counts reads.
type countedReads struct {
	bytes.Reader

	reads int
}

func (c *countedReads) Read(b []byte) (int, error) {
	c.reads++
	return c.Reader.Read(b)
}

// TestOpenReadsOnce: a footer comes with one read of the file's end, and one that is longer with a second.
func TestOpenReadsOnce(t *testing.T) {
	whole := load(t, "plain")
	f, err := Open(bytes.NewReader(whole), int64(len(whole)))
	must(t, err)
	want := fmt.Sprint(f.Columns(), f.meta.RowGroups)
	for _, c := range []struct{ more, front, reads int }{{0, 0, 1}, {0, 2 * lastBytes, 1}, {lastBytes, 0, 2}, {3 * lastBytes, lastBytes, 2}} {
		data := widen(whole, c.more, c.front)
		from := &countedReads{Reader: *bytes.NewReader(data)}
		f, err := Open(from, int64(len(data)))
		must(t, err)
		if got := fmt.Sprint(f.Columns(), f.meta.RowGroups); got != want || from.reads != c.reads {
			t.Errorf("%+v: %d reads, %s\nwant\n%s", c, from.reads, got, want)
		}
	}
	footer := int(binary.LittleEndian.Uint32(whole[len(whole)-tailBytes:]))
	for more := lastBytes - footer - 2*tailBytes; more <= lastBytes-footer; more++ { // it begins about where the first read does
		data := widen(whole, more, lastBytes)
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		must(t, err)
		if got := fmt.Sprint(f.Columns(), f.meta.RowGroups); got != want {
			t.Errorf("with %d more bytes: %s\nwant\n%s", more, got, want)
		}
	}
}
