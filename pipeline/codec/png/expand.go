package png

// The color types.
const (
	grey      = 0
	rgb       = 2
	indexed   = 3
	greyAlpha = 4
	rgba      = 6
)

// kind says whether a color type has a depth.
func kind(depth int, color byte) bool {
	switch color {
	case grey:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16
	case indexed:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8
	case rgb, greyAlpha, rgba:
		return depth == 8 || depth == 16
	}
	return false
}

// pixelBits is the size of a pixel.
func (r *reader) pixelBits() int {
	channels := [...]int{grey: 1, rgb: 3, indexed: 1, greyAlpha: 2, rgba: 4}
	return channels[r.color] * r.depth
}

// pixelBytes is how far back the filters look.
func (r *reader) pixelBytes() int { return (r.pixelBits() + 7) / 8 }

// rowBytes is the size of a row of n pixels.
func (r *reader) rowBytes(n int) int { return (n*r.pixelBits() + 7) / 8 }

// expand makes RGB of the pixels of a raw row from pixel x on, as many as dst has room for.
func (r *reader) expand(dst, raw []byte, x int) {
	n := len(dst) / 3
	if r.depth < 8 {
		r.expandBits(dst, raw, x)
		return
	}
	size := r.pixelBytes()
	raw = raw[x*size : (x+n)*size]
	switch {
	case r.color == indexed && !r.indices:
		for i, v := range raw {
			r.color3(dst[3*i:], int(v))
		}
	case r.color == grey && r.depth == 16: // as Pillow has it: cut, not scaled
		for i := range n {
			v := raw[2*i+1]
			if raw[2*i] != 0 {
				v = 255
			}
			dst[3*i], dst[3*i+1], dst[3*i+2] = v, v, v
		}
	case r.color == grey || r.color == greyAlpha || r.color == indexed:
		for i := range n {
			v := raw[i*size]
			dst[3*i], dst[3*i+1], dst[3*i+2] = v, v, v
		}
	case size == 3:
		copy(dst, raw)
	default: // the upper bytes of three samples
		step := r.depth / 8
		for i := range n {
			p := raw[i*size:][:2*step+1]
			d := dst[3*i:][:3]
			d[0], d[1], d[2] = p[0], p[step], p[2*step]
		}
	}
}

// expandBits is expand for pixels smaller than a byte.
func (r *reader) expandBits(dst, raw []byte, x int) {
	most := 1<<r.depth - 1
	for i := range len(dst) / 3 {
		bit := (x + i) * r.depth
		v := int(raw[bit/8]) >> (8 - r.depth - bit%8) & most
		d := dst[3*i:][:3]
		if r.color == indexed && !r.indices {
			r.color3(d, v)
			continue
		}
		g := byte(v * 255 / most)
		if r.color == indexed || r.indices && most == 1 {
			g = byte(v)
		}
		d[0], d[1], d[2] = g, g, g
	}
}

// color3 looks a color up. What the palette lacks is black.
func (r *reader) color3(d []byte, i int) {
	if 3*i+3 <= len(r.palette) {
		copy(d[:3], r.palette[3*i:])
		return
	}
	d[0], d[1], d[2] = 0, 0, 0
}
