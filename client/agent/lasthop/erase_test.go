package lasthop

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

func box(n ...uint64) []byte {
	b := make([]byte, 0, boxBytes)
	for _, x := range n {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b[:boxBytes]
}

// Every value of an image is either its own or the erasing one, in every type and layout.
func TestEraseFillsTheRectangle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		h, w, element, planar := 1+r.IntN(9), 1+r.IntN(9), 1<<r.IntN(3), r.IntN(2) == 0
		top, left := r.IntN(h), r.IntN(w)
		height, width := r.IntN(h-top+1), r.IntN(w-left+1)
		pix, value := make([]byte, 3*h*w*element), make([]byte, 3*element)
		for i := range pix {
			pix[i] = byte(r.IntN(100))
		}
		for i := range value {
			value[i] = byte(100 + r.IntN(100))
		}
		want := bytes.Clone(pix)
		for y := top; y < top+height; y++ {
			for x := left; x < left+width; x++ {
				for c := range 3 {
					at := (y*w+x)*3 + c
					if planar {
						at = (c*h+y)*w + x
					}
					copy(want[at*element:], value[c*element:(c+1)*element])
				}
			}
		}
		img := canvas{pix, h, w, element, planar, nil}
		if !img.eraseBox(box(uint64(top), uint64(left), uint64(height), uint64(width)), value) || !bytes.Equal(pix, want) {
			t.Fatalf("%d×%d+%d+%d of %d×%d, %d bytes, planar %v: differs", width, height, left, top, w, h, element, planar)
		}
	}
}

func TestEraseStaysInside(t *testing.T) {
	huge := ^uint64(0)
	for _, b := range [][]byte{box(0, 0, 4, 1), box(3, 0, 1, 1), box(0, 2, 1, 2), box(huge, 0, 2, 1), box(0, 1, 1, huge), box(0, 0, huge, huge)} {
		img := canvas{make([]byte, 27), 3, 3, 1, false, nil}
		if img.eraseBox(b, []byte{1, 1, 1}) {
			t.Errorf("%v is taken", b)
		}
	}
	for _, b := range [][]byte{box(2, 2, 1, 1), box(0, 0, 3, 3), box(9, 9, 0, 0)} {
		img := canvas{make([]byte, 27), 3, 3, 1, true, nil}
		if !img.eraseBox(b, []byte{1, 1, 1}) {
			t.Errorf("%v is refused", b)
		}
	}
}

func TestErasuresAreChecked(t *testing.T) {
	l := Hop{DType: "float16", Erase: base64.StdEncoding.EncodeToString(make([]byte, 12))}
	if all, err := l.decodeErasures(); err != nil || len(all) != 2 || len(all[1]) != 6 {
		t.Errorf("%v, %v", all, err)
	}
	for _, text := range []string{"AAAA", "!"} {
		l.Erase = text
		if _, err := l.decodeErasures(); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
