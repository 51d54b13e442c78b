package transform

import (
	"encoding/binary"
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
	"github.com/feedwater-io/feedwater/pipeline/resize"
)

// ctAugment is CTAugment of ReMixMatch (Berthelot et al., 2020, section 3.2) with the ops of FixMatch's appendix: some
// ops, chosen evenly, each at a level chosen by weights that the training loop learns. A probe has all levels alike;
// what the model makes of it teaches the weights.
type ctAugment struct {
	Depth int     `json:"depth"`
	Probe float64 `json:"probe"` // share of the samples that are probes
	// How the weights are learnt, which is the trainer's part; here so that the plan's hash tells runs apart.
	Threshold float64 `json:"threshold"`
	Decay     float64 `json:"decay"`
	Lag       int     `json:"lag"`
}

func newCTAugment(a *arguments) op {
	o := &ctAugment{Depth: a.readWithin("depth", 2, 1, 16), Probe: 0.5, Threshold: 0.85, Decay: 0.99}
	for name, to := range map[string]*float64{"probe": &o.Probe, "threshold": &o.Threshold, "decay": &o.Decay} {
		if raw, ok := a.takeArgument(name); ok {
			*to = a.parseNumber(name, raw, 0, 1)
		}
	}
	o.Lag = a.readWithin("lag", 8, 1, 256)
	if a.depth > 0 {
		a.refuseArgument("op", "works only outside of other transforms", "CTAugment")
	}
	return o
}

func (o *ctAugment) outputSize(size image.Point, fixed bool) (image.Point, bool) { return size, fixed }

// A learntOp op, and into how many bins each of its levels is divided.
type learntOp struct {
	name string
	bins []int
}

// learntOps are those of FixMatch, in the order of their weights in a policy.
var learntOps = []learntOp{
	{"AutoContrast", []int{17}}, {"Blur", []int{17}}, {"Brightness", []int{17}}, {"Color", []int{17}}, {"Contrast", []int{17}},
	{"Cutout", []int{17}}, {"Equalize", []int{17}}, {"Identity", nil}, {"Invert", []int{17}}, {"Posterize", []int{8}},
	{"Rescale", []int{17, 6}}, {"Rotate", []int{17}}, {"Sharpness", []int{17}}, {"ShearX", []int{17}}, {"ShearY", []int{17}},
	{"Smooth", []int{17}}, {"Solarize", []int{17}}, {"TranslateX", []int{17}}, {"TranslateY", []int{17}},
}

// policyBins is the number of all bins.
var policyBins = func() (n int) {
	for _, l := range learntOps {
		for _, bins := range l.bins {
			n += bins
		}
	}
	return n
}()

// CheckPolicy returns what is wrong with the policy that comes with a batch's name: a little-endian uint16 for every
// bin of CTAugment, op after op and level after level, how likely it is among those of its level. None of a level may
// have only zeros. Empty, all are alike; a chain without CTAugment takes only that.
func (c Chain) CheckPolicy(policy []byte) error {
	if len(policy) == 0 {
		return nil
	}
	if !slices.ContainsFunc(c.steps, func(s step) bool { return s.name == "CTAugment" }) {
		return fmt.Errorf("%d bytes for a plan without CTAugment", len(policy))
	}
	if len(policy) != 2*policyBins {
		return fmt.Errorf("%d bytes; CTAugment has %d bins of 2", len(policy), policyBins)
	}
	for _, l := range learntOps {
		for _, bins := range l.bins {
			if sumWeights(policy[:2*bins]) == 0 {
				return fmt.Errorf("no bin of %s has any weight", l.name)
			}
			policy = policy[2*bins:]
		}
	}
	return nil
}

func sumWeights(weights []byte) (sum uint32) {
	for ; len(weights) > 0; weights = weights[2:] {
		sum += uint32(binary.LittleEndian.Uint16(weights))
	}
	return sum
}

// drawWeighted chooses a bin by its weight.
func drawWeighted(x uint32, weights []byte) int {
	left := order.Below(x, sumWeights(weights))
	for bin := 0; ; bin++ {
		w := uint32(binary.LittleEndian.Uint16(weights[2*bin:]))
		if left < w {
			return bin
		}
		left -= w
	}
}

// A learntReport is one op at its levels, as replay tells it.
type learntReport struct {
	Name   string    `json:"name"`
	Bins   []int     `json:"bins"`
	Levels []float64 `json:"levels"`
}

// drawParameters takes for op k from block 2k its op, and of its first level the bin and the place within it; from
// block 2k+1 the same of its second level, and where Cutout cuts. Word 0 of the block behind them says whether the
// sample is a probe.
func (o *ctAugment) drawParameters(d rng, p *program, rec *Draw) error {
	last := d.Block(2 * uint32(o.Depth)) //nolint:gosec // at most 16
	probe := float64(order.Unit(last[0])) < o.Probe
	policy := p.policy
	if probe {
		policy = nil
	}
	told := struct {
		Probe bool           `json:"probe"`
		Ops   []learntReport `json:"ops"`
	}{probe, nil}
	for k := range uint32(o.Depth) { //nolint:gosec // at most 16
		x, y := d.Block(2*k), d.Block(2*k+1)
		t := chooseLearntOp(x, y, policy)
		if rec != nil {
			told.Ops = append(told.Ops, t.report())
		}
		if err := t.addTo(p); err != nil {
			return err
		}
	}
	if rec != nil {
		rec.Parameters = marshalCanonical(told)
	}
	return nil
}

// learntDraw is an op as it was drawn.
type learntDraw struct {
	*learntOp
	bin   [2]int
	level [2]float64 // from 0, below 1
	spot  [2]float32 // of Cutout, as shares of the sides
}

func chooseLearntOp(x, y [4]uint32, policy []byte) learntDraw {
	which := order.Below(x[0], uint32(len(learntOps)))
	t := learntDraw{learntOp: &learntOps[which], spot: [2]float32{order.Unit(y[2]), order.Unit(y[3])}}
	if len(policy) > 0 {
		for _, l := range learntOps[:which] {
			for _, bins := range l.bins {
				policy = policy[2*bins:]
			}
		}
	}
	words := [2][2]uint32{{x[1], x[2]}, {y[0], y[1]}}
	for i, bins := range t.bins {
		t.bin[i] = int(order.Below(words[i][0], uint32(bins))) //nolint:gosec // at most 17
		if len(policy) > 0 {
			t.bin[i] = drawWeighted(words[i][0], policy[:2*bins])
			policy = policy[2*bins:]
		}
		t.level[i] = (float64(t.bin[i]) + float64(order.Unit(words[i][1]))) / float64(bins)
	}
	return t
}

func (t *learntDraw) report() learntReport {
	n := len(t.bins)
	return learntReport{t.name, slices.Clone(t.bin[:n]), slices.Clone(t.level[:n])}
}

// addTo adds the op to the program. Levels mean what they do in FixMatch's code, but for translations, which it hands
// over as shares of the sides where Pillow takes pixels: here they go as far as its paper says, 0.3 of a side.
func (t *learntDraw) addTo(p *program) error {
	l, size := t.level[0], p.currentSize()
	around := func(most float64) float64 { return float64((float64(2*l) - 1) * most) } // from −most to most
	switch t.name {
	case "Identity":
		return nil
	case "Brightness", "Color", "Contrast", "Sharpness":
		return p.addEffect(policyOp{Name: t.name, Magnitude: float64(1.9*l) - 0.9}.colourEffect(), size)
	case "AutoContrast", "Blur", "Equalize", "Invert", "Smooth":
		return p.addEffect(raster.BlendWith(t.name, l), size)
	case "Cutout":
		return p.addEffect(raster.CutOut(l, t.spot, size), size)
	case "Posterize":
		return p.addEffect(raster.Posterize(1+int(l*7.999)), size)
	case "Solarize":
		return p.addEffect(raster.Solarize(math.Floor(l*255.999)), size)
	case "Rescale":
		return p.addZoom(l, rescaleFilters[int(t.level[1]*5.99)])
	case "Rotate":
		return p.addPolicyOp(policyOp{Name: t.name, Magnitude: math.RoundToEven(around(45))}, nearestOnly)
	case "TranslateX":
		return p.addPolicyOp(policyOp{Name: t.name, Magnitude: around(0.3) * float64(size.X)}, nearestOnly)
	case "TranslateY":
		return p.addPolicyOp(policyOp{Name: t.name, Magnitude: around(0.3) * float64(size.Y)}, nearestOnly)
	}
	return p.addPolicyOp(policyOp{Name: t.name, Magnitude: around(0.3)}, nearestOnly) // shear
}

var (
	nearestOnly    = raster.Sampling{Interpolation: resize.Nearest}
	rescaleFilters = [6]string{resize.Lanczos, resize.Bicubic, resize.Bilinear, "box", "hamming", resize.Nearest}
)

// addZoom cuts a margin off and resizes the rest to the size it was of.
func (p *program) addZoom(level float64, filter string) error {
	size, margin := p.currentSize(), float64(level*0.25)
	low, high := func(side int) int { return int(math.RoundToEven(margin * float64(side))) }, func(side int) int {
		return int(math.RoundToEven(float64(side) * (1 - margin)))
	}
	if err := p.addCrop(image.Rect(low(size.X), low(size.Y), high(size.X), high(size.Y))); err != nil {
		return err
	}
	return p.addResize(size, resize.Method{Filter: filter})
}
