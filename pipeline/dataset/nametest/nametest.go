// Package nametest draws names of files whose orders by byte and by code point differ, and decodes names as Python does. It is
// for tests, and imports nothing of ours.
package nametest

import (
	"math/rand/v2"
	"strings"
)

// pieces are bytes and characters whose orders by byte and by code point differ, or that are near a slash.
var pieces = []string{
	"a", "b", "B", " ", "-", ".", "0", "~", "\n", "\x01", "é", "日", "\ue000", "\ufffd", "😀", "\x80", "\xff", "\xe2", "\x82", "\xe2\x82", "\xf0\x9f",
	"\xf0\x9f\x98", "\xed\xa0\x80", "\xc0",
}

// Random draws a name of one to five pieces.
func Random(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// DecodeAsPython decodes a name as os.fsdecode does: each byte that is no part of valid UTF-8 becomes U+DC00 plus itself.
func DecodeAsPython(name string) []rune {
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
