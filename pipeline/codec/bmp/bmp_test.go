package bmp

import (
	"encoding/binary"
	"image"
	"testing"
)

// first is a sink that keeps the first pixel.
type first [3]byte

func (f *first) Rows(pix []byte, _, _ int) { copy(f[:], pix) }

// headed is a picture of one pixel of 8 bits, which stands in the header where the size does; the palette, of two colours, ends the file.
func headed(pixel byte, palette string) []byte {
	b := []byte("BM")
	for _, v := range []uint32{0, 0, 34, 40, 1, 1, 8<<16 | 1, plain, uint32(pixel), 0, 0, 2, 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return append(b, palette...)
}

// A palette that the file's end cuts. Pillow 13 gives the same colours.
func TestPaletteIsCut(t *testing.T) {
	for _, c := range []struct {
		palette string
		pixel   byte
		want    first
	}{
		{"\x01\x02\x03\x00\x04\x05\x06\x00", 1, first{6, 5, 4}},
		{"\x01\x02\x03\x00\x04\x05\x06", 1, first{}},
		{"\x01\x02\x03\x00\x04\x05", 1, first{}},
		{"\x01\x02\x03\x00", 1, first{}},
		{"\x00\x00\x00\x00\xff\xff\xff", 0x80, first{255, 255, 255}}, // black and white are greys: pixels are bits
		{"\x00\x00\x00\x00\xff\xff", 0x80, first{}},
	} {
		d, got := NewDecoder(), first{}
		if _, _, err := d.Parse(headed(c.pixel, c.palette)); err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(image.Rect(0, 0, 1, 1), &got); err != nil || got != c.want {
			t.Errorf("palette %x: %v (%v), want %v", c.palette, got, err, c.want)
		}
	}
}
