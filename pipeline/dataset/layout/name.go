package layout

import (
	"bytes"
	"unicode/utf8"
)

// endings are torchvision.datasets.folder.IMG_EXTENSIONS.
var endings = [...]string{".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"}

// isPicture reports whether the lower-cased name has one of torchvision's endings. Lower case is ASCII's: no other letter
// becomes one of these in Python.
func isPicture(name []byte) bool {
	dot := bytes.LastIndexByte(name, '.')
	if dot < 0 || len(name)-dot > len(".jpeg") {
		return false
	}
	var lower [len(".jpeg")]byte
	n := copy(lower[:], name[dot:])
	for i, c := range lower[:n] {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + ('a' - 'A')
		}
	}
	for _, e := range endings {
		if string(lower[:n]) == e {
			return true
		}
	}
	return false
}

// compareNames orders file names and paths as Python orders them: by code point, where a byte that is not part of valid UTF-8
// stands for U+DC00 plus itself (os.fsdecode). For valid UTF-8 that is the order of bytes.
func compareNames[T string | []byte](a, b T) int {
	i, n := 0, min(len(a), len(b))
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n && len(a) == len(b) {
		return 0
	}
	if i < n && a[i] < utf8.RuneSelf && b[i] < utf8.RuneSelf {
		return int(a[i]) - int(b[i])
	}
	return compareRunes(a, b, runeStart(a, i))
}

// runeStart is where to begin so that byte i is read with the bytes before it that it may belong to. They are the same in both
// names.
func runeStart[T string | []byte](s T, i int) int {
	for k := i - 1; k >= 0 && k > i-utf8.UTFMax; k-- {
		if utf8.RuneStart(s[k]) {
			return k
		}
	}
	return i
}

// compareRunes compares from byte i on. Equal code points have equal lengths.
func compareRunes[T string | []byte](a, b T, i int) int {
	for i < len(a) && i < len(b) {
		ra, n := codePoint(a, i)
		rb, _ := codePoint(b, i)
		if ra != rb {
			return int(ra) - int(rb)
		}
		i += n
	}
	return len(a) - len(b)
}

func codePoint[T string | []byte](s T, i int) (rune, int) {
	r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
	if r == utf8.RuneError && n == 1 {
		r = 0xDC00 + rune(s[i])
	}
	return r, n
}
