package resize

import (
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// A Method says how pictures are resized: by which filter, in whose arithmetic. The zero value is Pillow's bilinear.
type Method struct {
	// Filter is torchvision's name of it; empty: bilinear.
	Filter string
	// Tensor tells torch's arithmetic on 8-bit tensors from Pillow's: weights of 16 bits, and always across before
	// down.
	Tensor bool
	// Aliased takes the filter as it is where a side shrinks; bilinear and bicubic of tensors alone.
	Aliased bool
}

// The filters that warps know too, by torchvision's names, and those of tensors.
const (
	Nearest      = "nearest"
	NearestExact = "nearest-exact"
	Bicubic      = "bicubic"
	Bilinear     = "bilinear"
	Lanczos      = "lanczos"
)

// FilterNames are the names of all filters, torchvision's. Tensors know those before lanczos, and lanczos when
// antialiased.
var FilterNames = []string{Bilinear, Bicubic, Nearest, NearestExact, Lanczos, "box", "hamming"}

// IsNearest reports whether each output is one pixel, so that nothing is weighed.
func (m Method) IsNearest() bool { return m.Filter == Nearest || m.Filter == NearestExact }

// isTriangle reports whether the filter is Pillow's bilinear.
func (m Method) isTriangle() bool {
	return !m.Tensor && !m.Aliased && (m.Filter == "" || m.Filter == Bilinear)
}

func (m Method) filterOf() filter {
	switch m.Filter {
	case Bicubic:
		if m.Aliased {
			return bicubicAliased
		}
		return bicubic
	case Lanczos:
		return lanczos
	case "box":
		return box
	case "hamming":
		return hamming
	}
	return bilinear
}

// scalingOf sets a filter up that is not nearest.
func (m Method) scalingOf(in, out int) scaling {
	s := m.filterOf().scaleTo(in, out)
	if m.Aliased {
		s.reach, s.inverse, s.aliased = s.support, 1, true
	}
	return s
}

// tensorBits is the precision of torch's weights for tensors: the largest with which all of them fit 16 bits.
func tensorBits(largest float64) int {
	bits := 0
	for bits < kernel.WeightBits && int(0.5+float64(largest*float64(int(2)<<bits))) < 1<<15 {
		bits++
	}
	return bits
}

// tensorIndex is where torch takes output i from, in float32.
func (m Method) tensorIndex(i, in, out int) int {
	scale, x := float32(in)/float32(out), float32(i)
	if m.Filter == NearestExact {
		x += 0.5
	}
	return min(int(float32(x*scale)), in-1)
}
