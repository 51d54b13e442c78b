package png

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"image"
	"runtime"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
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
		d := NewDecoder(kernel.Levels()[0])
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

// reds keeps the first byte of every pixel.
type reds struct {
	width int
	pix   []byte
}

func (s *reds) Rows(pix []byte, stride, n int) {
	for y := range n {
		for x := range s.width {
			s.pix = append(s.pix, pix[y*stride+3*x])
		}
	}
}

// A first frame that is smaller than the picture stands where its header says, but interlaced in the corner, as Pillow 13 has it; in every region.
func TestFrame(t *testing.T) {
	const side = 6
	fctl := make([]byte, 26)
	fctl[7], fctl[11], fctl[15], fctl[19] = 2, 3, 4, 1 // 2x3 at (4, 1)
	for interlaced, c := range []struct {
		rows []byte
		at   image.Point
	}{
		{[]byte{0, 1, 2, 0, 3, 4, 0, 5, 6}, image.Pt(4, 1)},
		{[]byte{0, 1, 0, 5, 0, 2, 0, 6, 0, 3, 4}, image.Point{}}, // by passes: (0, 0); (0, 2); column 1 of both rows; row 1
	} {
		file := greyOf(side, side, byte(interlaced), packed(t, c.rows), chunkOf("acTL", []byte{0, 0, 0, 1, 0, 0, 0, 0}), chunkOf("fcTL", fctl))
		d := NewDecoder(kernel.Levels()[0])
		for _, r := range []image.Rectangle{image.Rect(0, 0, side, side), image.Rect(1, 1, 5, 3), image.Rect(5, 2, 6, 6), image.Rect(0, 2, 1, 3)} {
			var want []byte
			for y := r.Min.Y; y < r.Max.Y; y++ {
				for x := r.Min.X; x < r.Max.X; x++ {
					v := 0
					if p := image.Pt(x, y).Sub(c.at); p.In(image.Rect(0, 0, 2, 3)) {
						v = 1 + p.X + 2*p.Y
					}
					want = append(want, byte(v))
				}
			}
			if _, _, err := d.Parse(file); err != nil {
				t.Fatal(err)
			}
			got := reds{width: r.Dx()}
			if err := d.Decode(r, &got); err != nil || !bytes.Equal(got.pix, want) {
				t.Errorf("interlaced %d, %v: %v, %v, want %v", interlaced, r, got.pix, err, want)
			}
		}
	}
}
