package jpeg

import (
	"bytes"
	"encoding/binary"
)

// zigzag is the place in a block of the k-th coefficient of the file.
var zigzag = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10,
	17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34,
	27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36,
	29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46,
	53, 60, 61, 54, 47, 55, 62, 63,
}

// quantTables reads the n bytes of a DQT segment.
func (p *parser) quantTables(n int) error {
	for n > 0 {
		head := p.u8()
		if head&15 > 3 {
			return p.broken("quantisation table %d", head&15)
		}
		t := &p.quant[head&15]
		for _, at := range zigzag {
			if head>>4 != 0 {
				t.q[at] = uint16(p.u16())
			} else {
				t.q[at] = uint16(p.u8())
			}
		}
		if p.cut {
			return p.truncated()
		}
		t.set = true
		n -= 65
		if head>>4 != 0 {
			n -= 64
		}
	}
	if n < 0 {
		return p.broken("quantisation segment too short by %d bytes", -n)
	}
	return nil
}

// huffmanTables reads the definitions of a DHT segment of n bytes. Whether a definition makes sense is asked when a scan
// uses it.
func (p *parser) huffmanTables(n int) error {
	for n > 16 {
		head, start := p.u8(), p.at
		for range 16 {
			p.u8()
		}
		if p.cut {
			return p.truncated()
		}
		d := definition(p.src[start:])
		symbols := d.symbols()
		n -= 17 + symbols
		switch {
		case symbols > 256 || n < 0:
			return p.broken("Huffman table of %d symbols", symbols)
		case len(d) < 16+symbols:
			return p.truncated()
		case head&0xef > 3:
			return p.broken("Huffman table %#x", head)
		case head&0x10 == 0:
			p.dc[head] = d[:16+symbols]
		default:
			p.ac[head&15] = d[:16+symbols]
		}
		p.at = start + 16 + symbols
	}
	if n != 0 {
		return p.broken("%d bytes left in a Huffman segment", n)
	}
	return nil
}

// conditioning checks a DAC segment of n bytes, which means nothing to a Huffman-coded file.
func (p *parser) conditioning(n int) error {
	for ; n > 0; n -= 2 {
		table, v := p.u8(), p.u8()
		if p.cut {
			return p.truncated()
		}
		if table > 31 || table < 16 && v&15 > v>>4 {
			return p.broken("arithmetic conditioning %#x of %d", v, table)
		}
	}
	if n != 0 {
		return p.broken("odd length of a conditioning segment")
	}
	return nil
}

func (p *parser) restartInterval(n int) error {
	if n != 2 {
		return p.broken("restart interval of %d bytes", n)
	}
	p.restart = p.u16()
	if p.cut {
		return p.truncated()
	}
	return nil
}

// application passes over a segment of n bytes. It takes what matters of it: which colour space the file names, and the
// segments that Pillow fails on because they are too short for what they say they hold.
func (p *parser) application(m byte, n int) error {
	if p.at+n > len(p.src) {
		return p.truncated()
	}
	b := p.src[p.at : p.at+n]
	has := func(app byte, prefix string) bool {
		return m == app && len(p.scans) == 0 && bytes.HasPrefix(b, []byte(prefix))
	}
	short := false
	switch {
	case has(mAPP0, "JFIF"):
		short = n < 7
		p.jfif = p.jfif || n >= 14 && b[4] == 0
	case has(mAPPE, "Adobe"):
		short = n < 7
		if n >= 12 {
			p.adobe = int(b[11])
		}
	case has(mAPP2, "ICC_PROFILE\x00"):
		if p.icc == nil || bytes.Compare(b, p.icc) < 0 {
			p.icc = b
		}
	case has(mAPPD, "Photoshop 3.0\x00"):
		short = photoshopCut(b)
	}
	if short {
		return p.broken("%q segment of %d bytes", b[:4], n)
	}
	p.at += n
	return nil
}

// photoshopCut reports whether a Photoshop segment ends between the code of a resource and its name, the one cut that Pillow's
// reader of these segments does not survive.
func photoshopCut(b []byte) bool {
	const resolution = 0x3ed
	for at := 14; at+4 <= len(b) && string(b[at:at+4]) == "8BIM"; {
		at += 6
		if at > len(b) {
			return false
		}
		if at == len(b) {
			return true
		}
		code := binary.BigEndian.Uint16(b[at-2:])
		at += 1 + int(b[at])
		at += at & 1
		if at+4 > len(b) {
			return false
		}
		size := int(binary.BigEndian.Uint32(b[at:]))
		at += 4
		if code == resolution && min(size, len(b)-at) < 14 {
			return false
		}
		at += size
		at += at & 1
	}
	return false
}
