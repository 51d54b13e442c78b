package jpeg

// space is what the samples of a file stand for.
type space int

const (
	grey space = iota
	yCbCr
	rgb
	cmyk
	ycck // CMYK whose first three are 255 less the RGB of YCbCr
)

// space goes by libjpeg's rules. Those for four components ignore JFIF.
func (p *parser) space() space {
	c := &p.frame.comps
	switch n := p.frame.n; {
	case n == 1:
		return grey
	case n == 4 && p.adobe > 0:
		return ycck
	case n == 4:
		return cmyk
	case p.jfif:
		return yCbCr
	case p.adobe == 0, p.adobe < 0 && c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B':
		return rgb
	default:
		return yCbCr
	}
}

// interleave writes pixels of three rows, each sample exclusive or flip.
func interleave(dst, r, g, b []byte, flip byte) {
	g, b, dst = g[:len(r)], b[:len(r)], dst[:3*len(r)]
	for i, v := range r {
		d := dst[3*i : 3*i+3 : 3*i+3]
		d[0], d[1], d[2] = v^flip, g[i]^flip, b[i]^flip
	}
}

// underBlack turns what light the stored C, M, Y leave into RGB: Pillow inverts all four samples and takes k - (255 - c) * k / 255, rounded, of
// the stored c and k, whether or not the file says Adobe.
func underBlack(dst, black []byte) {
	dst = dst[:3*len(black)]
	for i, v := range black {
		d, k := dst[3*i:3*i+3:3*i+3], uint32(v)
		for j, x := range d {
			t := uint32(x)*k + 128
			d[j] = byte(k - (t>>8+t)>>8)
		}
	}
}
