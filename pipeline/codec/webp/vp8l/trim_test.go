package vp8l

import "testing"

// appendBits appends bits, the lowest of a byte first, to bytes.
func appendBits(to []byte, bits string) []byte {
	for i, b := range bits {
		if i%8 == 0 {
			to = append(to, 0)
		}
		to[len(to)-1] |= byte(b-'0') << (i % 8)
	}
	return to
}

// A decoder does not keep much memory of a picture within one that breaks off before its pixels.
func TestTrim(t *testing.T) {
	const (
		predicted = "1" + "00" + "000" // a transform, prediction, of parts of 4×4
		code      = "1000"             // of one symbol, 0
	)
	data := appendBits(make([]byte, headerSize), predicted+"0"+code+code+code+code+code+predicted)
	d := NewDecoder("scalar")
	if err := d.Decode(data, 400, 400, 1, true); err == nil {
		t.Fatal("a transform twice is taken")
	}
	if n := cap(d.within.all); n != 100*100 {
		t.Fatalf("the picture within took %d words", n)
	}
	if d.Trim(1 << 20); cap(d.within.all) == 0 {
		t.Error("little memory is let go")
	}
	if d.Trim(1 << 12); cap(d.within.all) != 0 {
		t.Error("much memory is kept")
	}
}
