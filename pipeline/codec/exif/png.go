package exif

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/feedwater-io/feedwater/pipeline/codec/png"
)

// Names of text in PNG files that Pillow takes for metadata. The last value counts, whichever kind of chunk it is in.
const (
	exifName    = "exif"
	profileName = "Raw profile type exif"
	packetName  = "XML:com.adobe.xmp"
	xmpName     = "xmp"
)

// png reads the chunks, behind the pixels too.
func (m *metadata) png(file []byte) error {
	var first error
	png.Chunks(file, func(name string, data []byte) {
		err := error(nil)
		switch name {
		case "eXIf":
			m.exif = bytesOf(slices.Concat(exifMark, data))
		case "tEXt":
			m.plain(data)
		case "zTXt":
			err = m.compressed(data)
		case "iTXt":
			err = m.international(data)
		}
		if first == nil {
			first = err
		}
	})
	return first
}

// place is where the text of a name is kept, nil for names of no matter.
func (m *metadata) place(name []byte) *value {
	switch string(name) {
	case exifName:
		return &m.exif
	case profileName:
		return &m.profile
	case packetName:
		return &m.packet
	case xmpName:
		return &m.xmp
	}
	return nil
}

func (m *metadata) plain(chunk []byte) {
	name, text, _ := bytes.Cut(chunk, []byte{0})
	if to := m.place(name); to != nil {
		*to = textOf(text)
		to.text = string(name) != exifName
	}
}

func (m *metadata) compressed(chunk []byte) error {
	name, data, _ := bytes.Cut(chunk, []byte{0})
	to := m.place(name)
	if to == nil {
		return nil
	}
	if len(data) == 0 {
		*to = textOf(nil)
		return nil
	}
	text, err := m.texts.check(data[1:])
	if err == nil {
		*to = text
	} else if *to = textOf(nil); errors.Is(err, errTooLong) {
		return err
	}
	return nil
}

func (m *metadata) international(chunk []byte) error {
	name, rest, _ := bytes.Cut(chunk, []byte{0})
	to := m.place(name)
	if to == nil || len(rest) < 2 {
		return nil
	}
	method := rest[:2]
	language, rest, one := bytes.Cut(rest[2:], []byte{0})
	translated, data, two := bytes.Cut(rest, []byte{0})
	if !one || !two {
		return nil
	}
	text := textOf(data)
	text.valid = utf8.Valid(data)
	if method[0] != 0 {
		var err error
		if method[1] != 0 {
			return nil
		}
		if text, err = m.texts.check(data); err != nil {
			if errors.Is(err, errTooLong) {
				return err
			}
			return nil
		}
	}
	if string(name) == packetName {
		m.xmp = text
		m.xmp.text = false
	}
	if utf8.Valid(language) && utf8.Valid(translated) && text.valid {
		*to = text
	}
	return nil
}

// unhex reads a profile: digits behind the third line's end, with white space between bytes.
func unhex(text []byte) ([]byte, error) {
	lines := bytes.SplitN(text, []byte("\n"), 4)
	if len(lines) < 4 {
		return nil, nil
	}
	var digits []byte
	for _, line := range bytes.Split(lines[3], []byte("\n")) {
		digits = append(digits, line...)
	}
	data := make([]byte, 0, len(digits)/2)
	for at := 0; at < len(digits); {
		if c := digits[at]; c == ' ' || c >= '\t' && c <= '\r' {
			at++
			continue
		}
		var b [1]byte
		if at+2 > len(digits) {
			return nil, broken("a profile that ends amid a byte")
		}
		if _, err := hex.Decode(b[:], digits[at:at+2]); err != nil {
			return nil, broken("a profile that is no hexadecimal text")
		}
		data, at = append(data, b[0]), at+2
	}
	return data, nil
}

func broken(what string) error { return fmt.Errorf("%w: %s", ErrMetadata, what) }
