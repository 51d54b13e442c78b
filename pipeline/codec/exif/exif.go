// Package exif finds how a picture wants to be turned, as Pillow's ImageOps.exif_transpose does: in the EXIF data of JPEG, PNG
// and WebP files, or, where that is silent, in their XMP. Compressed XMP, and the hexadecimal profiles in the text of some PNG
// files, are not read, and EXIF data that makes no sense says nothing; there Pillow reads on, or raises an error. The package
// starts no goroutine.
package exif

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Orientation returns what is to be done to the pixels of a file to see it upright, by EXIF's numbers: 1 nothing, 2 mirror,
// 3 turn by 180°, 4 flip, 5 transpose, 6 turn by 90° clockwise, 7 transpose the other way, 8 turn by 90° counterclockwise.
func Orientation(file []byte) int {
	var m metadata
	switch {
	case bytes.HasPrefix(file, []byte("\xff\xd8")):
		m.jpeg(file)
	case bytes.HasPrefix(file, []byte("\x89PNG\r\n\x1a\n")):
		m.png(file)
	case len(file) > 30 && string(file[:4]) == "RIFF" && string(file[8:16]) == "WEBPVP8X":
		m.webp(file)
	}
	v, there := tag(m.exif)
	if !there {
		v = property(m.xmp)
	}
	if v < 1 || v > 8 {
		return 1
	}
	return v
}

// metadata is the parts of a file that may say it.
type metadata struct{ exif, xmp []byte }

var (
	exifMark = []byte("Exif\x00\x00")
	xmpMark  = []byte("http://ns.adobe.com/xap/1.0/\x00")
)

// jpeg reads the segments in front of the first scan. EXIF data may be in several of them.
func (m *metadata) jpeg(b []byte) {
	for at := 2; at+4 <= len(b); {
		switch {
		case b[at] != 0xff || b[at+1] == 0 || b[at+1] == 0xff: // what stands between segments is skipped
			at++
			continue
		case b[at+1] == 0xda:
			return
		case b[at+1] >= 0xd0 && b[at+1] <= 0xd8 || b[at+1] == 1:
			at += 2
			continue
		}
		n := max(2, int(binary.BigEndian.Uint16(b[at+2:])))
		if at+2+n > len(b) {
			return
		}
		if b[at+1] == 0xe1 {
			m.segment(b[at+4 : at+2+n])
		}
		at += 2 + n
	}
}

func (m *metadata) segment(b []byte) {
	switch {
	case bytes.HasPrefix(b, exifMark) && m.exif == nil:
		m.exif = slices.Clip(b) // the file's own: what is appended goes elsewhere
	case bytes.HasPrefix(b, exifMark):
		m.exif = append(m.exif, b[len(exifMark):]...)
	case bytes.HasPrefix(b, xmpMark):
		m.xmp = b[len(xmpMark):]
	}
}

// png reads the chunks, behind the pixels too; the last one counts.
func (m *metadata) png(b []byte) {
	for at := 8; at+8 <= len(b); {
		n := int(binary.BigEndian.Uint32(b[at:]))
		if n > len(b)-at-8 {
			return
		}
		data := b[at+8 : at+8+n]
		switch string(b[at+4 : at+8]) {
		case "IEND":
			return
		case "eXIf":
			m.exif = data
		case "iTXt":
			if rest, ok := bytes.CutPrefix(data, []byte("XML:com.adobe.xmp\x00\x00")); ok {
				m.xmp = rest
			}
		}
		at += 12 + n
	}
}

// webp reads the chunks that the header announces; the first one counts.
func (m *metadata) webp(b []byte) {
	const hasXMP, hasEXIF = 4, 8
	flags := b[20]
	for at := 12; at+8 <= len(b); {
		n := int(binary.LittleEndian.Uint32(b[at+4:]))
		if n > len(b)-at-8 {
			return
		}
		data := b[at+8 : at+8+n]
		switch name := string(b[at : at+4]); {
		case name == "EXIF" && flags&hasEXIF != 0 && m.exif == nil:
			m.exif = data
		case name == "XMP " && flags&hasXMP != 0 && m.xmp == nil:
			m.xmp = data
		}
		at += 8 + n + n&1
	}
}

// tag returns the orientation among EXIF data. Of several the first one counts.
func tag(b []byte) (v int, there bool) {
	for bytes.HasPrefix(b, exifMark) {
		b = b[len(exifMark):]
	}
	if len(b) < 8 {
		return 0, false
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch string(b[:4]) {
	case "II*\x00":
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 0, false
	}
	at := int(order.Uint32(b[4:]))
	if at+2 > len(b) {
		return 0, false
	}
	entries := int(order.Uint16(b[at:]))
	for at += 2; entries > 0 && at+12 <= len(b); entries, at = entries-1, at+12 {
		if order.Uint16(b[at:]) == orientation {
			if v, there = value(b, b[at:at+12], order); there {
				return v, true
			}
		}
	}
	return 0, false
}

const orientation = 0x0112

// value returns the first number of an entry if it is a whole one of 16 or 32 bits, else 0. An entry of no known type is as
// good as none.
func value(b, entry []byte, order binary.ByteOrder) (int, bool) {
	const short, long, signedShort, signedLong = 3, 4, 8, 9
	size := 2
	switch order.Uint16(entry[2:]) {
	case short, signedShort:
	case long, signedLong:
		size = 4
	default:
		const lastType = 13
		kind := order.Uint16(entry[2:])
		return 0, kind >= 1 && kind <= lastType
	}
	n := int(order.Uint32(entry[4:]))
	data := entry[8:]
	if n*size > 4 {
		at := int(order.Uint32(data))
		if at+n*size > len(b) {
			return 0, false
		}
		data = b[at:]
	}
	switch {
	case n == 0:
		return 0, false
	case size == 2:
		return int(order.Uint16(data)), true
	}
	return int(order.Uint32(data)), true
}

// property returns the orientation that XMP says, 0 for none.
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
