// Package exif finds how a picture wants to be turned, as ImageOps.exif_transpose of Pillow 13 does: in the EXIF data of JPEG, PNG and WebP
// files, also where that is text of a PNG, or, where the tag is not among it, in their XMP. What Pillow refuses is an error. Pillow writes the
// EXIF data anew when it has turned a picture, and refuses files of which it cannot; that is not done here. The package starts no goroutine.
package exif

import (
	"bytes"
	"errors"
)

// ErrMetadata is wrapped by errors about EXIF data and XMP that cannot be read.
var ErrMetadata = errors.New("broken EXIF data")

// Orientation returns what is to be done to the pixels of a file to see it upright, by EXIF's numbers: 1 nothing, 2 mirror,
// 3 turn by 180°, 4 flip, 5 transpose, 6 turn by 90° clockwise, 7 transpose the other way, 8 turn by 90° counterclockwise. The file is one that
// decodes; errors wrap ErrMetadata.
func Orientation(file []byte) (int, error) {
	m := metadata{}
	var err error
	switch {
	case bytes.HasPrefix(file, []byte("\xff\xd8")):
		m.jpeg(file)
	case bytes.HasPrefix(file, []byte("\x89PNG\r\n\x1a\n")):
		err = m.png(file)
	case len(file) > 30 && string(file[:4]) == "RIFF" && string(file[8:16]) == "WEBPVP8X":
		m.webp(file)
	}
	if err != nil {
		return 0, err
	}
	v, err := m.orientation()
	if err != nil {
		return 0, err
	}
	if v < 2 || v > 8 {
		return 1, nil
	}
	return v, nil
}

// metadata is the parts of a file that may say it.
type metadata struct {
	exif value
	// profile is EXIF data in hexadecimal digits, behind three lines of other text.
	profile value
	// packet is the XMP that Pillow looks at first, xmp what it looks at where that is empty.
	packet, xmp value
	// resolved says that Pillow reads the EXIF data for a resolution when it opens the file, and then forgets what was wrong with it.
	resolved bool

	texts texts
}

// value is what Pillow has for a name: nothing, bytes, or text, which it cannot read in the place of bytes.
type value struct {
	data        []byte
	there, text bool
	packed      bool // the data is compressed
	valid       bool // of compressed text and that of iTXt: it is UTF-8
}

func bytesOf(b []byte) value { return value{data: b, there: true} }
func textOf(b []byte) value  { return value{data: b, there: true, text: true} }

// orientation is the tag's number, or what XMP says; 0 for neither.
func (m *metadata) orientation() (int, error) {
	data, err := m.directory()
	if err != nil {
		return 0, err
	}
	v, there, err := tag(data)
	switch {
	case err != nil && m.resolved:
		return 0, nil // XMP is not looked at either
	case err != nil || there:
		return v, err
	}
	if packet := m.texts.content(m.packet); len(packet) > 0 {
		return property(packet), nil
	}
	xmp := m.texts.content(m.xmp)
	if m.xmp.text && len(xmp) > 0 {
		return 0, broken("XMP that is text under the name xmp")
	}
	return property(xmp), nil
}

// directory is the EXIF data itself.
func (m *metadata) directory() ([]byte, error) {
	switch {
	case m.exif.text:
		return nil, broken("EXIF data that is text under the name exif")
	case m.exif.there:
		return m.exif.data, nil
	case m.profile.there:
		return unhex(m.texts.content(m.profile))
	}
	return nil, nil
}

// property returns the orientation that XMP says first, 0 for none.
func property(xmp []byte) int {
	for {
		_, rest, there := bytes.Cut(xmp, []byte("tiff:Orientation"))
		if !there {
			return 0
		}
		for _, equals := range []string{`="`, ">"} {
			v, ok := bytes.CutPrefix(rest, []byte(equals))
			if ok && len(v) > 0 && v[0] >= '0' && v[0] <= '9' {
				return int(v[0] - '0')
			}
		}
		xmp = rest
	}
}
