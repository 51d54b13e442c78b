package exif

import (
	"bytes"
	"encoding/binary"
	"slices"
)

var (
	exifMark = []byte("Exif\x00\x00")
	xmpMark  = []byte("http://ns.adobe.com/xap/1.0/\x00")
)

// jpeg reads the segments in front of the first scan. EXIF data may be in several of them; the last XMP counts.
func (m *metadata) jpeg(b []byte) {
	dense := false // JFIF gives the resolution
	for at := 2; at+4 <= len(b); {
		marker := b[at+1]
		switch {
		case b[at] != 0xff || marker == 0 || marker == 0xff: // what stands between segments is skipped
			at++
			continue
		case marker == 0xda:
			m.resolved = m.exif.there && !dense
			return
		case marker >= 0xd0 && marker <= 0xd9 || marker >= 0xf0 && marker <= 0xfd:
			at += 2
			continue
		}
		n := max(2, int(binary.BigEndian.Uint16(b[at+2:])))
		if at+2+n > len(b) {
			return
		}
		data := b[at+4 : at+2+n]
		switch marker {
		case 0xe0:
			dense = dense || bytes.HasPrefix(data, []byte("JFIF")) && len(data) >= 12 && (data[7] == 1 || data[7] == 2)
		case 0xe1:
			m.segment(data)
		}
		at += 2 + n
	}
}

func (m *metadata) segment(b []byte) {
	switch {
	case bytes.HasPrefix(b, exifMark) && !m.exif.there:
		m.exif = bytesOf(slices.Clip(b)) // the file's own: what is appended goes elsewhere
	case bytes.HasPrefix(b, exifMark):
		m.exif.data = append(m.exif.data, b[len(exifMark):]...)
	case bytes.HasPrefix(b, xmpMark):
		m.xmp = bytesOf(b[len(xmpMark):])
	}
}
