package raster

import "github.com/feedwater-io/feedwater/pipeline/pixel"

// AdjustHue turns colours by factor, −½ to ½ of the circle. Pictures go through Pillow's 8-bit HSV, which costs some
// values even where factor is 0.
func AdjustHue(factor float64) Effect {
	return Effect{InPlace: turnHue, Numbers: [16]float64{factor}}
}

// A turnedHue hue is what becomes of a hue.
type turnedHue struct {
	share            uint32 // of the saturation that the middle channel loses, in 255ths
	top, mid, bottom uint8  // the channels in the order of their values
}

// A hueTable has what turnHue looks up. Pillow computes in float32 and truncates; whole numbers give the same, but for
// hues that are whole, which may come out one less: those are the ties.
type hueTable struct {
	hues    [256]turnedHue
	inverse [256]uint64 // ⌊2³² ÷ i⌋ + 1: products with it, shifted by 32, are quotients of any number below 2¹⁸
	ties    [256]uint8
	words   [512]uint32 // hues, then those that are whole, as the kernel takes them
}

func turnHue(e *Effect, w *Workspace, m *pixel.Image) {
	var c hueTable
	c.fillTables(byte(int(e.Numbers[0] * 255)))
	changePixels(w, m, (*Workspace).vectorPixels, func(p *byte, n int) { turnHues(p, n, &c.words) }, c.turnPixels)
}

func (c *hueTable) turnPixels(run []byte) {
	for i := 0; i < len(run); i += 3 {
		p := run[i : i+3 : i+3]
		r, g, b := int32(p[0]), int32(p[1]), int32(p[2])
		high := max(r, g, b)
		span := high - min(r, g, b)
		if span == 0 {
			continue
		}
		t := &c.hues[c.hueOf(hueAround(r, g, b, high, span), span)]
		s, v := c.saturationOf(span, high), uint32(high)
		low := v*(255-s) + 128
		p[t.top] = byte(v)
		p[t.mid] = byte((2*v*(65025-s*t.share) + 65025) / 130050)
		p[t.bottom] = byte((low + low>>8) >> 8)
	}
}

// hueAround is how far around the circle a colour is; 6·span is once.
func hueAround(r, g, b, high, span int32) uint32 {
	switch high {
	case r:
		at := g - b
		return uint32(at + at>>31&(6*span))
	case g:
		return uint32(2*span + b - r)
	}
	return uint32(4*span + r - g)
}

// hueOf is 255 · at ÷ (6·span), as Pillow truncates it.
func (c *hueTable) hueOf(at uint32, span int32) byte {
	n := 85 * uint64(at)
	h := n * c.inverse[byte(span)] >> 33
	return byte(h) - c.ties[byte(h)]&noRest(n-2*h*uint64(span))
}

// saturationOf is 255 · span ÷ high, as Pillow truncates it.
func (c *hueTable) saturationOf(span, high int32) uint32 {
	n := 255 * uint64(span)
	return uint32(n * c.inverse[byte(high)] >> 32)
}

// noRest is 1 for a rest of 0.
func noRest(rest uint64) uint8 { return uint8((rest - 1) >> 63) }

// fillTables fills the tables.
func (c *hueTable) fillTables(by byte) {
	orders := [6][3]uint8{{0, 1, 2}, {1, 0, 2}, {1, 2, 0}, {2, 1, 0}, {2, 0, 1}, {0, 2, 1}}
	for h := range 256 {
		at := uint32(byte(h) + by)
		sector, share := 6*at/255, 6*at%255
		if sector%2 == 0 {
			share = 255 - share
		}
		o := orders[sector%6]
		c.hues[h] = turnedHue{share, o[0], o[1], o[2]}
		c.inverse[h] = 1<<32/uint64(max(h, 1)) + 1
		c.ties[h] = uint8(h) - hueByFloats(2*int32(h))
		c.words[h] = share<<24 | 1<<(8*o[1]) | 2<<(8*o[2])
	}
	for h := range 256 {
		c.words[256+h] = c.words[byte(h)-c.ties[h]]
	}
}

// hueByFloats is Pillow's hue of a colour of span 85 that is at around the circle: quotients and the hue in float32,
// what is between in float64. The quotients are of what the channels lack: 1 for the least; rest or part for the
// middle.
func hueByFloats(at int32) byte {
	const span = 85
	sector, part := at/span, float32(at%span)/span
	rest := float32(span-at%span) / span
	var h float32
	switch sector {
	case 0:
		h = 1 - rest
	case 1:
		h = float32(2 + float64(part) - 1)
	case 2:
		h = float32(2 + 1 - float64(rest))
	case 3:
		h = float32(4 + float64(part) - 1)
	case 4:
		h = float32(4 + 1 - float64(rest))
	default:
		h = part - 1
	}
	x := float64(h)/6 + 1
	if x >= 1 {
		x--
	}
	return byte(int32(float64(float64(float32(x)) * 255)))
}
