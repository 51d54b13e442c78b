package transform

import (
	"fmt"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/resize"
)

// method is the part of an op's arguments that says how it resizes.
type method struct {
	Dialect       string `json:"dialect,omitempty"`
	Interpolation string `json:"interpolation"`
	// Antialias is false or left out.
	Antialias *bool `json:"antialias,omitempty"`
}

func (m *method) of() resize.Method {
	return resize.Method{Filter: m.Interpolation, Tensor: m.Dialect == tensorDialect, Aliased: m.Antialias != nil}
}

func (m *method) dialect() string { return m.Dialect }

// method reads interpolation and antialias. PIL images are always antialiased; for tensors null means false.
func (a *arguments) method() method {
	m := method{Interpolation: resize.Bilinear}
	if a.dialect() == tensorDialect {
		m.Dialect = tensorDialect
	}
	if raw, ok := a.take("interpolation"); ok {
		m.Interpolation = a.choice("interpolation", raw, resize.FilterNames)
	}
	tensor := m.Dialect == tensorDialect
	if at := slices.Index(resize.FilterNames, m.Interpolation); tensor && at > slices.Index(resize.FilterNames, resize.Lanczos) {
		a.refuse("interpolation", fmt.Sprintf("tensors know no %q", m.Interpolation), resize.Bilinear)
	}
	raw, ok := a.take("antialias")
	switch text := string(raw); {
	case !ok || text == "true" || !tensor && text == "null":
	case !tensor:
		a.refuse("antialias", fmt.Sprintf("PIL images are always antialiased, got %s", brief(raw)), true)
	case text != "false" && text != "null":
		a.refuse("antialias", fmt.Sprintf("must be true or false, got %s", brief(raw)), true)
	case m.Interpolation == resize.Lanczos:
		a.refuse("antialias", "lanczos is antialiased always", true)
	case m.of().IsNearest():
	default:
		m.Antialias = new(bool)
	}
	return m
}

// onMasks is nearest, whatever pictures are resized by, but for nearest-exact.
func (m method) onMasks() method {
	if m.Interpolation != resize.NearestExact {
		m.Interpolation = resize.Nearest
	}
	return method{Dialect: tensorDialect, Interpolation: m.Interpolation}
}
