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

func (m *method) resizeMethod() resize.Method {
	return resize.Method{Filter: m.Interpolation, Tensor: m.Dialect == tensorDialect, Aliased: m.Antialias != nil}
}

func (m *method) dialectName() string { return m.Dialect }

// readMethod reads interpolation and antialias. PIL images are always antialiased; for tensors null means false.
func (a *arguments) readMethod() method {
	m := method{Interpolation: resize.Bilinear}
	if a.readDialect() == tensorDialect {
		m.Dialect = tensorDialect
	}
	if raw, ok := a.takeArgument("interpolation"); ok {
		m.Interpolation = a.readChoice("interpolation", raw, resize.FilterNames)
	}
	tensor := m.Dialect == tensorDialect
	if at := slices.Index(resize.FilterNames, m.Interpolation); tensor && at > slices.Index(resize.FilterNames, resize.Lanczos) {
		a.refuseArgument("interpolation", fmt.Sprintf("tensors know no %q", m.Interpolation), resize.Bilinear)
	}
	raw, ok := a.takeArgument("antialias")
	switch text := string(raw); {
	case !ok || text == "true" || !tensor && text == "null":
	case !tensor:
		a.refuseArgument("antialias", fmt.Sprintf("PIL images are always antialiased, got %s", shortenText(raw)), true)
	case text != "false" && text != "null":
		a.refuseArgument("antialias", fmt.Sprintf("must be true or false, got %s", shortenText(raw)), true)
	case m.Interpolation == resize.Lanczos:
		a.refuseArgument("antialias", "lanczos is antialiased always", true)
	case m.resizeMethod().IsNearest():
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
