package raster

import (
	"math"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// turnHueTensor turns colours by a factor, −½ to ½ of the circle, as torchvision does for 8-bit tensors: HSV in
// float32, every step rounded.
func turnHueTensor(e *Effect, w *Workspace, m *pixel.Image) {
	w.floats = pixel.Grow(w.floats, 256)
	unit, by := (*[256]float32)(w.floats), float32(e.Numbers[0])
	for v := range unit {
		unit[v] = float32(v) * float32(1.0/255)
	}
	changePixels(w, m, (*Workspace).fusedPixels, func(p *byte, n int) { turnTensorHues(p, n, by) }, func(run []byte) { turnUnits(run, unit, by) })
}

func turnUnits(run []byte, unit *[256]float32, by float32) {
	for i := 0; i < len(run); i += 3 {
		p := run[i : i+3 : i+3]
		high, low := max(p[0], p[1], p[2]), min(p[0], p[1], p[2])
		v := unit[high]
		if high == low {
			g := as8Bits(v) // what saturation 0 leaves, at any hue
			p[0], p[1], p[2] = g, g, g
			continue
		}
		span := v - unit[low]
		h := hueOf(unit, p, high, span)
		p[0], p[1], p[2] = colourOf(turnedBy(h, by), span/v, v)
	}
}

// hueOf is the hue of a colour, from 0 to 1.
func hueOf(unit *[256]float32, p []byte, high byte, span float32) float32 {
	v := unit[high]
	r, g, b := unit[p[0]], unit[p[1]], unit[p[2]]
	var h float32
	switch high {
	case p[0]:
		h = (v-b)/span - (v-g)/span
	case p[1]:
		h = ((v-r)/span + 2) - (v-b)/span
	default:
		h = ((v-g)/span + 4) - (v-r)/span
	}
	return fractionalPart(float32(h*float32(1.0/6)) + 1)
}

// turnedBy is torch's remainder of h + by, divided by 1.
func turnedBy(h, by float32) float32 {
	h += by
	whole := float32(math.Floor(float64(h)))
	return h - whole
}

// fractionalPart is what x ≥ 0 has behind the point.
func fractionalPart(x float32) float32 { return x - float32(int32(x)) }

// colourOf is the colour of a hue, a saturation and a value.
func colourOf(h, s, v float32) (r, g, b byte) {
	h = float32(h * 6)
	sector := int32(h)
	f := h - float32(sector)
	share := float32(s * f)
	rest := 1 - s
	top := as8Bits(v)
	low := as8Bits(unitOf(float32(rest * v)))
	falling := as8Bits(unitOf(float32((1 - share) * v)))
	rising := as8Bits(unitOf(float32((share + rest) * v)))
	switch sector {
	case 1:
		return falling, top, low
	case 2:
		return low, top, rising
	case 3:
		return low, falling, top
	case 4:
		return rising, low, top
	case 5:
		return top, low, falling
	}
	return top, rising, low // 0, and 6 where the hue was rounded up to 1
}

func unitOf(x float32) float32 { return min(max(x, 0), 1) }

// as8Bits is a value from 0 to 1 as 8 bits.
func as8Bits(x float32) byte { return byte(int32(x * 255.999)) }
