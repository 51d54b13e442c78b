package augment

import (
	"fmt"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// A Method says how pictures are resized: by which filter, in whose arithmetic. The zero value is Pillow's bilinear.
type Method struct {
	// Filter is torchvision's name of it; empty: bilinear.
	Filter string
	// Tensor tells torch's arithmetic on 8-bit tensors from Pillow's: weights of 16 bits, and always across before down.
	Tensor bool
	// Aliased takes the filter as it is where a side shrinks; bilinear and bicubic of tensors alone.
	Aliased bool
}

const (
	nearestName      = "nearest"
	nearestExactName = "nearest-exact"
	bicubicName      = "bicubic"
	bilinearName     = "bilinear"
	lanczosName      = "lanczos"
)

// filterNames are those of torchvision. Tensors know those before lanczos, and lanczos when antialiased.
var filterNames = []string{bilinearName, bicubicName, nearestName, nearestExactName, lanczosName, "box", "hamming"}

func (m Method) nearest() bool { return m.Filter == nearestName || m.Filter == nearestExactName }

func (m Method) filter() filter {
	switch m.Filter {
	case bicubicName:
		if m.Aliased {
			return bicubicAliased
		}
		return bicubic
	case lanczosName:
		return lanczos
	case "box":
		return box
	case "hamming":
		return hamming
	}
	return bilinear
}

// scaling sets a filter up that is not nearest.
func (m Method) scaling(in, out int) scaling {
	s := m.filter().scaling(in, out)
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
	if m.Filter == nearestExactName {
		x += 0.5
	}
	return min(int(float32(x*scale)), in-1)
}

// method is the part of an op's arguments that says how it resizes.
type method struct {
	Dialect       string `json:"dialect,omitempty"`
	Interpolation string `json:"interpolation"`
	// Antialias is false or left out.
	Antialias *bool `json:"antialias,omitempty"`
}

func (m *method) of() Method {
	return Method{m.Interpolation, m.Dialect == tensorDialect, m.Antialias != nil}
}

func (m *method) dialect() string { return m.Dialect }

// method reads interpolation and antialias. PIL images are always antialiased; for tensors null means false.
func (a *arguments) method() method {
	m := method{Interpolation: bilinearName}
	if a.dialect() == tensorDialect {
		m.Dialect = tensorDialect
	}
	if raw, ok := a.take("interpolation"); ok {
		m.Interpolation = a.choice("interpolation", raw, filterNames)
	}
	tensor := m.Dialect == tensorDialect
	if at := slices.Index(filterNames, m.Interpolation); tensor && at > slices.Index(filterNames, lanczosName) {
		a.refuse("interpolation", fmt.Sprintf("tensors know no %q", m.Interpolation), bilinearName)
	}
	raw, ok := a.take("antialias")
	switch text := string(raw); {
	case !ok || text == "true" || !tensor && text == "null":
	case !tensor:
		a.refuse("antialias", fmt.Sprintf("PIL images are always antialiased, got %s", brief(raw)), true)
	case text != "false" && text != "null":
		a.refuse("antialias", fmt.Sprintf("must be true or false, got %s", brief(raw)), true)
	case m.Interpolation == lanczosName:
		a.refuse("antialias", "lanczos is antialiased always", true)
	case m.of().nearest():
	default:
		m.Antialias = new(bool)
	}
	return m
}
