package raster

import (
	"math"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// Noise is a distribution of whole numbers from −255 to 255, where those beyond would do the same.
type Noise struct {
	ends  [511]uint64 // of 2³² draws, how many give at most i−255
	first [257]uint16 // the smallest number, plus 255, that draws of an upper byte give
}

// NewNoise returns the noise of a normal distribution, of values from 0 to 255, truncated towards zero.
func NewNoise(mean, sigma float64) *Noise {
	n := &Noise{}
	n.setDistribution(mean, sigma)
	return n
}

// AddNoise adds noise to each value, clamped. Value i takes word i mod 4 of block i div 4.
func AddNoise(n *Noise, g RNG) Effect { return Effect{InPlace: addNoise, Noise: n, RNG: g} }

func (n *Noise) setDistribution(mean, sigma float64) {
	for i := range n.ends {
		// Truncated, at most k means: at most k if that is negative, else less than k+1.
		bound := float64(i - 255)
		if bound >= 0 {
			bound++
		}
		share := 0.0
		if sigma > 0 {
			share = normalShare((bound - mean) / sigma)
		} else if mean < bound || mean == bound && bound < 0 {
			share = 1
		}
		n.ends[i] = uint64(share * (1 << 32))
	}
	n.ends[510] = 1 << 32
	k := 0
	for b := range n.first {
		for k < 510 && n.ends[k] <= uint64(b)<<24 {
			k++
		}
		n.first[b] = uint16(k)
	}
}

// valueOf is the number for a random word.
func (n *Noise) valueOf(x uint32) int32 {
	k := int(n.first[x>>24])
	for n.ends[k] <= uint64(x) {
		k++
	}
	return int32(k) - 255
}

// normalShare is the share of the normal distribution below x: ½ + φ(x)·(x + x³/3 + x⁵/(3·5) + …).
func normalShare(x float64) float64 {
	if math.Abs(x) > 7 {
		return math.Max(0, math.Copysign(1, x))
	}
	square := float64(x * x)
	term, sum := x, x
	for k := 3.0; k < 260; k += 2 {
		term = float64(term*square) / k
		sum += term
	}
	density := order.Exp(-square/2) / math.Sqrt(2*math.Pi)
	return min(max(0.5+float64(density*sum), 0), 1)
}

// addNoise gives value i of the picture word i mod 4 of block i div 4.
func addNoise(e *Effect, _ *Workspace, m *pixel.Image) {
	i := uint32(0)
	var x [4]uint32
	for y := range m.H {
		row := m.Row(y)
		for j, v := range row {
			if i%4 == 0 {
				x = e.RNG.Block(i / 4)
			}
			row[j] = clampByte(int32(v) + e.Noise.valueOf(x[i%4]))
			i++
		}
	}
}
