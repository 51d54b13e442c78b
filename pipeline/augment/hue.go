package augment

import (
	"math"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// adjustHue turns colours by factor, −½ to ½ of the circle. Pictures go through Pillow's 8-bit HSV, which costs some values even where
// factor is 0.
func adjustHue(factor float64) effect {
	return effect{inPlace: turnHue, numbers: [16]float64{factor}}
}

// A turned hue is what a hue becomes: a sector of the circle and a place in it.
type turned struct {
	part            float64 // of the sector; counted from its end in even sectors
	odd             bool
	top, mid, least uint8 // the channels in the order of their values
}

func turnHue(e *effect, _ *workspace, m *pixel.Image) {
	var hues [256]turned
	var saturations [256]float64
	turn(&hues, byte(int(e.numbers[0]*255)))
	for s := range saturations {
		saturations[s] = float64(float32(float64(s) / 255))
	}
	for y := range m.H {
		row := rowOf(m, y)
		for i := 0; i < len(row); i += 3 {
			p := row[i : i+3 : i+3]
			r, g, b := int32(p[0]), int32(p[1]), int32(p[2])
			high := max(r, g, b)
			span := high - min(r, g, b)
			if span == 0 {
				continue
			}
			t := &hues[hueOf(r, g, b, high, span)]
			s := saturations[saturationOf(high, span)]
			v := float64(high)
			share := float64(s * t.part)
			if t.odd {
				share = float64(float32(share))
			}
			p[t.top] = byte(high)
			p[t.mid] = byte(int32(float64(v*(1-share)) + 0.5))
			p[t.least] = byte(int32(float64(v*(1-s)) + 0.5))
		}
	}
}

// turn says what becomes of every hue.
func turn(hues *[256]turned, by byte) {
	orders := [6][3]uint8{{0, 1, 2}, {1, 0, 2}, {1, 2, 0}, {2, 1, 0}, {2, 0, 1}, {0, 2, 1}}
	for h := range hues {
		at := float64(byte(h)+by) * 6 / 255
		sector := math.Floor(at)
		part := float64(float32(at - sector))
		i := int(sector) % 6
		if i%2 == 0 {
			part = 1 - part
		}
		hues[h] = turned{part, i%2 == 1, orders[i][0], orders[i][1], orders[i][2]}
	}
}

// hueOf is the hue of a colour whose largest channel is high and exceeds the smallest by span > 0, 0…255. Pillow's arithmetic: quotients and
// the hue in float32, what is between in float64.
func hueOf(r, g, b, high, span int32) byte {
	d := float32(span)
	var h float32
	switch high {
	case r:
		h = float32(high-b)/d - float32(high-g)/d
	case g:
		h = float32(2 + float64(float32(high-r)/d) - float64(float32(high-b)/d))
	default:
		h = float32(4 + float64(float32(high-g)/d) - float64(float32(high-r)/d))
	}
	x := float64(h)/6 + 1
	if x >= 1 {
		x--
	}
	return byte(int32(float64(float64(float32(x)) * 255)))
}

// saturationOf is span ÷ high, 0…255.
func saturationOf(high, span int32) byte {
	return byte(int32(float64(float64(float32(span)/float32(high)) * 255)))
}
