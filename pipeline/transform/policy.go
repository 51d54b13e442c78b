package transform

import (
	"image"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/internal/trig"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// A policyOp is what a policy does to a picture in one go: an op of torchvision's policies, and how strongly.
type policyOp struct {
	Name      string  `json:"name"`
	Magnitude float64 `json:"magnitude"`
	// level tells that Magnitude is a level of 8 bits, not a share of them all.
	level bool
}

// randomOps are what RandAugment and TrivialAugmentWide choose from, in torchvision's order.
var randomOps = [14]string{
	"Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness",
	"Posterize", "Solarize", "AutoContrast", "Equalize",
}

// A magnitudes says how far the ops of a policy go.
type magnitudes struct {
	shear, degrees, enhance float64
	share                   float64 // of a side, that translations go
	parts                   float64 // or that a side is divided by
	pixels                  float64 // or that they go
	bits, fewer             float64 // of posterize: at most, and how many less at least
	levels                  bool    // thresholds of solarize are spaced from 255 to 0, not 255 times what is spaced from 1 to 0
}

// usual is the space of RandAugment and AutoAugment, wide that of TrivialAugmentWide.
var (
	usual = magnitudes{shear: 0.3, degrees: 30, enhance: 0.9, share: 150.0 / 331.0, bits: 8, fewer: 4}
	wide  = magnitudes{shear: 0.99, degrees: 135, enhance: 0.99, pixels: 32, bits: 8, fewer: 6}
)

// policyOpAt is an op of a policy at a bin of so many. negative is whether its sign is drawn so, which not all have.
func (s *magnitudes) policyOpAt(name string, bin, bins int, negative bool, size image.Point) policyOp {
	var most float64
	switch name {
	case "ShearX", "ShearY":
		most = s.shear
	case "TranslateX":
		most = s.maxTranslation(size.X)
	case "TranslateY":
		most = s.maxTranslation(size.Y)
	case "Rotate":
		most = s.degrees
	case "Brightness", "Color", "Contrast", "Sharpness":
		most = s.enhance
	case "Solarize":
		if s.levels {
			return policyOp{name, spacedValue(255, 0, bin, bins), true}
		}
		return policyOp{Name: name, Magnitude: spacedValue(1, 0, bin, bins)}
	case "Posterize":
		less := float32(bin) / float32(float64(bins-1)/s.fewer)
		return policyOp{Name: name, Magnitude: math.RoundToEven(float64(float32(s.bits) - less))}
	default:
		return policyOp{Name: name}
	}
	m := spacedValue(0, float32(most), bin, bins)
	if negative {
		m = -m
	}
	return policyOp{Name: name, Magnitude: m + 0}
}

func (s *magnitudes) maxTranslation(side int) float64 {
	if s.parts > 0 {
		return float64(side) / s.parts
	}
	return s.pixels + float64(s.share*float64(side))
}

// spacedValue is element i of torch.spaced(a, b, n), n > 1: counted from the nearer end, rounded once. The sums are
// exact in float64.
func spacedValue(a, b float32, i, n int) float64 {
	step := float64((b - a) / float32(n-1))
	if i < n/2 {
		return float64(float32(float64(a) + float64(float64(i)*step)))
	}
	return float64(float32(float64(b) - float64(float64(n-1-i)*step)))
}

// drawNegative draws a sign as torchvision does.
func drawNegative(x uint32) bool { return order.Unit(x) <= 0.5 }

// addPolicyOp adds one to the program.
func (p *program) addPolicyOp(t policyOp, b raster.Sampling) error {
	if b.Tensor {
		e := t.effectOnTensor(b, p.currentSize())
		if e.IsNone() {
			return nil
		}
		return p.addEffect(e, p.currentSize())
	}
	m, a := t.Magnitude, raster.Affinity{Scale: 1}
	switch t.Name {
	case "Identity":
		return nil
	case "ShearX":
		a.Shear[0] = trig.Degrees(trig.Atan(m))
		return p.addAffine(a, b, &[2]float64{})
	case "ShearY":
		a.Shear[1] = trig.Degrees(trig.Atan(m))
		return p.addAffine(a, b, &[2]float64{})
	case "TranslateX":
		a.Translate[0] = int(m)
		return p.addAffine(a, b, nil)
	case "TranslateY":
		a.Translate[1] = int(m)
		return p.addAffine(a, b, nil)
	case "Rotate":
		return p.addRotation(m, b, false, nil)
	}
	return p.addEffect(t.colourEffect(), p.currentSize())
}

// colourEffect is an op of a policy of colours.
func (t policyOp) colourEffect() raster.Effect {
	switch m := t.Magnitude; t.Name {
	case "Brightness":
		return raster.AdjustBrightness(1 + m)
	case "Color":
		return raster.AdjustSaturation(1 + m)
	case "Contrast":
		return raster.AdjustContrast(1 + m)
	case "Sharpness":
		return raster.AdjustSharpness(1 + m)
	case "Posterize":
		return raster.Posterize(int(m))
	case "Solarize":
		if t.level {
			return raster.Solarize(m)
		}
		return raster.Solarize(float64(255 * m))
	case "AutoContrast":
		return raster.Autocontrast()
	case "Equalize":
		return raster.Equalize()
	default:
		return raster.Invert()
	}
}

// policyDialect is whose arithmetic a policy or a warp repeats.
type policyDialect struct {
	Dialect string `json:"dialect,omitempty"` // empty: pil
}

func (d policyDialect) dialectName() string { return d.Dialect }

func (d policyDialect) warpSampling(interpolation string, fill *[3]float64) raster.Sampling {
	return raster.Sampling{Interpolation: interpolation, Fill: fill, Tensor: d.Dialect == tensorDialect}
}

func readPolicyDialect(a *arguments, interpolation string) policyDialect {
	if a.readDialect() != tensorDialect {
		return policyDialect{}
	}
	if interpolation == "bicubic" {
		a.refuseArgument("interpolation", "tensors have no bicubic warps", "bilinear")
	}
	return policyDialect{tensorDialect}
}

// generation is 1 for policies of torchvision.transforms, whose thresholds of solarize are others than those of v2.
type generation struct {
	Generation int `json:"generation,omitempty"` // 0: v2
}

func (g generation) applyTo(s magnitudes) magnitudes {
	s.levels = g.Generation == 1
	return s
}

func readGeneration(a *arguments, d policyDialect) generation {
	if a.readWithin("generation", 2, 1, 2) == 2 {
		return generation{}
	}
	if d.Dialect == tensorDialect {
		a.refuseArgument("generation", "on tensors there is v2's only", 2)
	}
	return generation{1}
}

// A policyReport collects ops for replay. The nil report forgets them.
type policyReport[T drawnOp] struct {
	draw *Draw
	Ops  []T `json:"ops"`
}

// drawnOp is an op of a policy as it was drawn.
type drawnOp interface{ isIdentity() bool }

// newReport returns nil when nobody asks.
func newReport[T drawnOp](rec *Draw) *policyReport[T] {
	if rec == nil {
		return nil
	}
	rec.Applied = false
	return &policyReport[T]{rec, []T{}}
}

func (r *policyReport[T]) addOp(t T) {
	if r != nil {
		r.Ops = append(r.Ops, t)
		r.draw.Applied = r.draw.Applied || !t.isIdentity()
	}
}

func (t policyOp) isIdentity() bool { return t.Name == "Identity" }

func (r *policyReport[T]) writeDraw() {
	if r != nil {
		r.draw.Parameters = marshalCanonical(r)
	}
}

// effectOnTensor is what an op of a policy does to a tensor.
func (t policyOp) effectOnTensor(b raster.Sampling, size image.Point) raster.Effect {
	switch t.Name {
	case "Identity":
		return raster.Effect{}
	case "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate":
		return t.tensorWarp(b, size)
	}
	return t.tensorEffect()
}

// tensorEffect is an op of a policy of colours in that dialect.
func (t policyOp) tensorEffect() raster.Effect {
	switch factor := 1 + t.Magnitude; t.Name {
	case "Brightness":
		return raster.AdjustBrightnessTensor(factor)
	case "Color":
		return raster.AdjustSaturationTensor(factor)
	case "Contrast":
		return raster.AdjustContrastTensor(factor)
	case "Sharpness":
		return raster.AdjustSharpnessTensor(factor)
	case "Solarize":
		return raster.SolarizeTensor(255 * t.Magnitude)
	case "AutoContrast":
		return raster.AutocontrastTensor()
	}
	return t.colourEffect()
}

// tensorWarp is what a warp of a policy does to a tensor of that size. The effect has none for a picture that stays as
// it is.
func (t policyOp) tensorWarp(b raster.Sampling, size image.Point) raster.Effect {
	m, a := t.Magnitude, raster.Affinity{Scale: 1}
	center := &[2]float64{}
	switch t.Name {
	case "ShearX":
		a.Shear[0] = trig.Degrees(trig.Atan(m))
		center = &[2]float64{-float64(size.X) * 0.5, -float64(size.Y) * 0.5}
	case "ShearY":
		a.Shear[1] = trig.Degrees(trig.Atan(m))
		center = &[2]float64{-float64(size.X) * 0.5, -float64(size.Y) * 0.5}
	case "TranslateX":
		a.Translate[0] = int(m)
	case "TranslateY":
		a.Translate[1] = int(m)
	case "Rotate":
		angle := trig.Modulo360(m)
		switch {
		case angle == 0:
			return raster.Effect{}
		case angle == 90 && size.X == size.Y, angle == 270 && size.X == size.Y:
			return raster.TurnQuarter(angle)
		}
		a.Angle = -angle
	}
	return raster.WarpTensor(a.InverseMatrix(center), b, size)
}
