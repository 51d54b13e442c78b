package png

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"image"
	"runtime"
	"testing"
)

// packed is data as the chunks have it.
func packed(t *testing.T, data []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// greyOf is a grey picture of a chunk of data. Further chunks stand in front of that.
func greyOf(w, h int, interlaced byte, data []byte, further ...[]byte) []byte {
	size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(w)), uint32(h))
	b := append([]byte(Signature), chunkOf("IHDR", append(size, 8, 0, 0, 0, interlaced))...)
	for _, f := range further {
		b = append(b, f...)
	}
	return append(append(b, chunkOf("IDAT", data)...), chunkOf("IEND", nil)...)
}

// A file whose data cannot become the picture it claims is refused before there is memory for that; one that ends behind a row is taken, as Pillow takes it.
func TestClaim(t *testing.T) {
	const side = 4000
	for name, c := range map[string]struct {
		data []byte
		want error
		most uint64
	}{
		"no row":  {packed(t, nil), ErrTruncated, 1 << 20},
		"cut":     {packed(t, make([]byte, 1+side/8))[:10], ErrTruncated, 1 << 20},
		"one row": {packed(t, make([]byte, 1+side/8)), nil, 1 << 30},
	} {
		d := NewDecoder()
		if _, _, err := d.Parse(greyOf(side, side, 1, c.data)); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := d.Decode(image.Rect(0, 0, side, side), nowhere{})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > c.most {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}
