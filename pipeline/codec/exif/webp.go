package exif

import "encoding/binary"

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
		case name == "EXIF" && flags&hasEXIF != 0 && !m.exif.there:
			m.exif = bytesOf(data)
		case name == "XMP " && flags&hasXMP != 0 && !m.xmp.there:
			m.xmp = bytesOf(data)
		}
		at += 8 + n + n&1
	}
}
