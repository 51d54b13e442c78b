package layout

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/nametest"
)

func TestIsPicture(t *testing.T) {
	for _, name := range []string{
		"a.jpg", "a.JPG", "a.JpEg", ".jpg", "a.b.png", "a.ppm", "a.bmp", "a.pgm", "a.tif", "a.TIFF", "a.webp", "\xff.jpg", "a..jpg", "a b\n.jpg",
	} {
		if !isPicture([]byte(name)) {
			t.Errorf("%q is no picture", name)
		}
	}
	for _, name := range []string{
		"", "jpg", "ajpg", "a.jpgg", "a.jpg ", "a.jp", "a.gif", "a.jpg.txt", "a.", ".", "a.jpe\x00g",
		"a.t\u0130f", // its lower case in Python is "t", "i", U+0307, "f"
		"a.\uff4apg", // fullwidth j
	} {
		if isPicture([]byte(name)) {
			t.Errorf("%q is a picture", name)
		}
	}
}

func TestCompareNamesIsPythonsOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	byBytes := 0
	for range 200_000 {
		a, b := nametest.Random(r), nametest.Random(r)
		want := slices.Compare(nametest.DecodeAsPython(a), nametest.DecodeAsPython(b))
		if got := cmp.Compare(compareNames(a, b), 0); got != want {
			t.Fatalf("compareNames(%q, %q) = %d, want %d", a, b, got, want)
		}
		if got := cmp.Compare(compareNames([]byte(a), []byte(b)), 0); got != want {
			t.Fatalf("compareNames of bytes (%q, %q) = %d, want %d", a, b, got, want)
		}
		if bytes.Compare([]byte(a), []byte(b)) != want {
			byBytes++
		}
	}
	if byBytes == 0 {
		t.Error("no pair tells the order of code points from that of bytes")
	}
}
