// Package filename writes file names as text that can be read back. A name on disk is a row of bytes, nearly always
// UTF-8; JSON, protobuf's strings and people take text alone. There is one escape for the bytes that belong to no
// character: b, which is 0x80 or more, is `\udc80` for 0x80 to `\udcff` for 0xFF. In JSON that is the lone surrogate
// that Python's os.fsdecode makes of the byte, so that a name read by Python is os.fsdecode's; and it is reversible.
// Names that are UTF-8 are written as ever. The functions hold no state and may be called by many goroutines at once.
package filename

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Name is a file's name or path, byte by byte as the system has it. In JSON it is a string, with the escape of the
// package.
type Name string

// String is the name for people; see Text.
func (n Name) String() string { return Text(string(n)) }

// Text is s with the escape in place of bytes that belong to no character: valid UTF-8, and s itself where that is
// UTF-8. It is for people; a name that has such an escape in its characters looks the same.
func Text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		n := characters(s)
		b.WriteString(s[:n])
		if s = s[n:]; len(s) > 0 {
			fmt.Fprintf(&b, `\udc%02x`, s[0])
			s = s[1:]
		}
	}
	return b.String()
}

// Clip is s cut to at most n bytes, before a character rather than within one.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for back := 0; back < utf8.UTFMax-1 && n > 0 && !utf8.RuneStart(s[n]); back++ {
		n--
	}
	return s[:n]
}

// Brief is text from outside, cut to what fits a message: whoever chose it may have chosen much.
func Brief(s string) string {
	const most = 200
	if len(s) > most {
		s = fmt.Sprintf("%s… (%d bytes)", s[:most], len(s))
	}
	return s
}

// characters is how many bytes at the beginning of s are whole characters.
func characters(s string) int {
	for at, r := range s {
		if r != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(s[at:]); size == 1 {
			return at
		}
	}
	return len(s)
}

// MarshalJSON implements json.Marshaler.
func (n Name) MarshalJSON() ([]byte, error) {
	s := string(n)
	if utf8.ValidString(s) {
		return json.Marshal(s)
	}
	b := []byte{'"'}
	for len(s) > 0 {
		whole := characters(s)
		quoted, err := json.Marshal(s[:whole])
		if err != nil {
			return nil, err
		}
		b = append(b, quoted[1:len(quoted)-1]...)
		if s = s[whole:]; len(s) > 0 {
			b = fmt.Appendf(b, `\udc%02x`, s[0])
			s = s[1:]
		}
	}
	return append(b, '"'), nil
}

// errSurrogate refuses text that no name becomes.
var errSurrogate = errors.New("a lone surrogate that stands for no byte of a file's name")

// UnmarshalJSON implements json.Unmarshaler. A lone surrogate that is no escape is an error: no file has such a name.
func (n *Name) UnmarshalJSON(text []byte) error {
	if !bytes.Contains(text, []byte(`\u`)) {
		return json.Unmarshal(text, (*string)(n))
	}
	inside := text[1 : len(text)-1] // encoding/json has found a whole string
	var name []byte
	for len(inside) > 0 {
		plain := beforeSurrogate(inside)
		var part string
		if err := json.Unmarshal(quoted(inside[:plain]), &part); err != nil {
			return err
		}
		name = append(name, part...)
		if inside = inside[plain:]; len(inside) > 0 {
			u, _ := escaped(inside)
			if u < 0xDC80 || u > 0xDCFF {
				return errSurrogate
			}
			name, inside = append(name, byte(u)), inside[escapeBytes:]
		}
	}
	*n = Name(name)
	return nil
}

const escapeBytes = len(`\udc80`)

// beforeSurrogate is how many bytes of the inside of a JSON string lie before the first escape of a lone surrogate.
func beforeSurrogate(inside []byte) int {
	for at := 0; at < len(inside); {
		u, is := escaped(inside[at:])
		switch {
		case !is && inside[at] == '\\':
			at += 2
		case !is:
			at++
		case u < 0xD800 || u > 0xDFFF:
			at += escapeBytes
		default:
			low, is := escaped(inside[at+escapeBytes:])
			if u >= 0xDC00 || !is || low < 0xDC00 || low > 0xDFFF {
				return at
			}
			at += 2 * escapeBytes // a character beyond 16 bits
		}
	}
	return len(inside)
}

// escaped is the number of the \u escape that text begins with, if it begins with one.
func escaped(text []byte) (uint64, bool) {
	if len(text) < escapeBytes || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	u, err := strconv.ParseUint(string(text[2:escapeBytes]), 16, 16)
	return u, err == nil
}

func quoted(inside []byte) []byte {
	return append(append([]byte{'"'}, inside...), '"')
}
