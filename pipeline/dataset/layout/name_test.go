package layout

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
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

// python decodes a name as os.fsdecode does: each byte that is no part of valid UTF-8 becomes U+DC00 plus itself.
func python(name string) []rune {
	var out []rune
	for name != "" {
		r := []rune(name)[0]
		n := len(string(r))
		if !strings.HasPrefix(name, string(r)) { // []rune put U+FFFD for a byte
			r, n = 0xDC00+rune(name[0]), 1
		}
		out, name = append(out, r), name[n:]
	}
	return out
}

// pieces are bytes and characters whose orders by byte and by code point differ, or that are near a slash.
var pieces = []string{
	"a", "b", "B", " ", "-", ".", "0", "~", "\n", "\x01", "é", "日", "\ue000", "\ufffd", "😀", "\x80", "\xff", "\xe2", "\x82", "\xe2\x82", "\xf0\x9f",
	"\xf0\x9f\x98", "\xed\xa0\x80", "\xc0",
}

func randomName(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func TestCompareNamesIsPythonsOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	byBytes := 0
	for range 200_000 {
		a, b := randomName(r), randomName(r)
		want := slices.Compare(python(a), python(b))
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
