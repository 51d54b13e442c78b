package transform

import (
	"image"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/internal/trig"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// augMix mixes a picture with what some chains of ops make of it. torchvision does that on tensors, also where the
// picture is none.
type augMix struct {
	Severity int `json:"severity"`
	mixture
	AllOps        bool        `json:"all_ops"`
	Interpolation string      `json:"interpolation"`
	Fill          *[3]float64 `json:"fill"`
}

// mixture is what torchvision's AugMix and timm's have in common: some chains of ops, and how much they weigh.
type mixture struct {
	Width int     `json:"mixture_width"`
	Depth int     `json:"chain_depth"` // below 1: one to three, drawn for each chain
	Alpha float64 `json:"alpha"`
}

func readMixture(a *arguments) mixture {
	m := mixture{a.readWithin("mixture_width", 3, 1, mostChains), a.readWithin("chain_depth", -1, -1, deepest), 1}
	if raw, ok := a.takeArgument("alpha"); ok {
		m.Alpha = a.parseNumber("alpha", raw, 0.01, 1000)
	}
	if m.Depth < 1 {
		m.Depth = -1
	}
	return m
}

// drawnDepth is the most ops of a chain whose depth is drawn.
const drawnDepth = 3

// drawDepth is the depth of a chain, by a random word if it has to be drawn.
func (m *mixture) drawDepth(word uint32) int {
	if m.Depth > 0 {
		return m.Depth
	}
	return 1 + int(order.Below(word, drawnDepth))
}

// steps are the most that a pixel takes.
func (m *mixture) steps() int {
	depth := m.Depth
	if depth < 1 {
		depth = drawnDepth
	}
	return m.Width * depth * raster.UsualSteps
}

// drawVariates are gamma variates: of the picture, of what it is mixed with, and of each chain. sum is that of the chains. Each has 64
// blocks to itself, from block 256 on.
func (m *mixture) drawVariates(d raster.RNG) (own, rest float64, chains [mostChains]float64, sum float64) {
	own, rest = drawGamma(d, 256, m.Alpha), drawGamma(d, 256+64, m.Alpha)
	for i := range m.Width {
		chains[i] = drawGamma(d, uint32(256+64*(2+i)), m.Alpha) //nolint:gosec // small
		sum += chains[i]
	}
	return own, rest, chains, sum
}

// mixedOps are what it chooses from, in torchvision's order; the last four are left out unless all are wanted.
var mixedOps = [13]string{
	"ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Posterize", "Solarize", "AutoContrast", "Equalize",
	"Brightness", "Color", "Contrast", "Sharpness",
}

var mixing = magnitudes{shear: 0.3, degrees: 30, enhance: 0.9, parts: 3, bits: 4, fewer: 4}

const (
	mostChains = 32
	deepest    = 32
)

func newAugMix(a *arguments) op {
	o := &augMix{Severity: a.readWithin("severity", 3, 1, 10), mixture: readMixture(a)}
	o.AllOps, o.Interpolation, o.Fill = a.readBool("all_ops", true), a.readWarpFilter("bilinear"), a.readPaint(nil)
	if o.Interpolation == "bicubic" {
		a.refuseArgument("interpolation", "works on tensors, which have no bicubic warps", "bilinear")
	}
	return o
}

func (o *augMix) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

func (o *augMix) drawParameters(d rng, p *program, rec *Draw) error {
	e := raster.Effect{Across: mixChains, Op: o, RNG: d.RNG, Steps: o.steps()}
	if rec != nil {
		o.tellChains(d.RNG, p.currentSize(), rec)
	}
	return p.addEffect(e, p.currentSize())
}

type mixedChain struct {
	Weight float64    `json:"weight"`
	Ops    []policyOp `json:"ops"`
}

func (o *augMix) tellChains(d raster.RNG, size image.Point, rec *Draw) {
	own, weights := o.drawWeights(d)
	chains := make([]mixedChain, o.Width)
	for i := range chains {
		chains[i].Weight = float64(weights[i])
		for k := range o.depthOf(d, i) {
			chains[i].Ops = append(chains[i].Ops, o.drawPolicyOp(d, i, k, size))
		}
	}
	rec.Parameters = marshalCanonical(struct {
		Weight float64      `json:"weight"`
		Chains []mixedChain `json:"chains"`
	}{float64(own), chains})
}

// drawWeights are those of the picture and of the chains; they add up to 1.
func (o *augMix) drawWeights(d raster.RNG) (own float32, chains [mostChains]float32) {
	a, b, g, sum := o.drawVariates(d)
	own, rest := float32(a/(a+b)), float32(b/(a+b))
	for i := range o.Width {
		chains[i] = float32(float32(g[i]/sum) * rest)
	}
	return own, chains
}

// drawGamma is a variate of the gamma distribution with shape alpha, by Marsaglia and Tsang (2000): each attempt takes
// one block, for a normal variate by Box and Muller and for what decides about it. A small shape goes by alpha+1.
func drawGamma(d raster.RNG, block uint32, alpha float64) float64 {
	shape := alpha
	if alpha < 1 {
		shape++
	}
	third := shape - 1.0/3
	c := 1 / math.Sqrt(9*third)
	for k := uint32(0); ; k++ {
		x := d.Block(block + k)
		z := math.Sqrt(-2*order.Log(openUnit(x[0]))) * trig.Cos(float64(2*math.Pi*openUnit(x[1])))
		v := 1 + float64(c*z)
		if v <= 0 {
			continue
		}
		v = float64(float64(v*v) * v)
		if order.Log(openUnit(x[2])) >= float64(0.5*float64(z*z))+float64(third*(1-v+order.Log(v))) && k < 63 {
			continue
		}
		g := float64(third * v)
		if alpha < 1 {
			g *= order.Exp(max(order.Log(openUnit(x[3]))/alpha, -600))
		}
		return g
	}
}

// openUnit makes a number between 0 and 1, neither of them, of a random word.
func openUnit(x uint32) float64 { return (float64(x) + 0.5) / (1 << 32) }

// chainBlock is the first block of what chain i draws: one for each op, and one for the depth behind them.
func chainBlock(i int) uint32 { return uint32(1<<16 + 256*i) } //nolint:gosec // small

func (o *augMix) depthOf(d raster.RNG, i int) int {
	return o.drawDepth(d.Block(chainBlock(i) + deepest)[0])
}

// drawPolicyOp k of chain i takes op, bin and sign from a block.
func (o *augMix) drawPolicyOp(d raster.RNG, i, k int, size image.Point) policyOp {
	count := len(mixedOps)
	if !o.AllOps {
		count -= 4
	}
	x := d.Block(chainBlock(i) + uint32(k))            //nolint:gosec // small
	name := mixedOps[order.Below(x[0], uint32(count))] //nolint:gosec // small
	bin := int(order.Below(x[1], uint32(o.Severity)))  //nolint:gosec // small
	return mixing.policyOpAt(name, bin, 10, drawNegative(x[2]), size)
}

// mixChains runs the chains one after the other, and adds up in float32.
func mixChains(e *raster.Effect, w *raster.Workspace, dst, src *pixel.Image) {
	o := e.Op.(*augMix) //nolint:forcetypeassert // its own effect
	d, size := e.RNG, image.Pt(src.W, src.H)
	b := raster.Sampling{Interpolation: o.Interpolation, Fill: o.Fill, Tensor: true}
	own, weights := o.drawWeights(d)
	n := 3 * src.W
	w.Sums = pixel.Grow(w.Sums, n*src.H)
	for y := 0; y < src.H && !w.IsStopped(); y++ {
		raster.AddWeighted(w.Sums[y*n:], src.Row(y), own, false)
	}
	for i := range o.Width {
		m := runEffects(w, src, o.depthOf(d, i), func(k int) raster.Effect {
			return o.drawPolicyOp(d, i, k, size).effectOnTensor(b, size)
		})
		for y := 0; y < src.H && !w.IsStopped(); y++ {
			raster.AddWeighted(w.Sums[y*n:], m.Row(y), weights[i], true)
		}
	}
	for y := 0; y < dst.H && !w.IsStopped(); y++ {
		sums := w.Sums[y*n:][:n]
		for i := range dst.Row(y) {
			dst.Row(y)[i] = byte(int32(sums[i]))
		}
	}
}

// runEffects returns what so many effects, one after the other, make of src, in memory of w or src itself.
func runEffects(w *raster.Workspace, src *pixel.Image, depth int, effectOf func(k int) raster.Effect) *pixel.Image {
	m := src
	for k := range depth {
		e := &w.Inner // of its own, it would be allocated
		*e = effectOf(k)
		switch {
		case w.IsStopped():
			return m
		case e.Across != nil:
			to := &w.Pictures[0]
			if m == to {
				to = &w.Pictures[1]
			}
			to.Reset(src.W, src.H)
			e.Across(e, w, to, m)
			m = to
		case e.InPlace != nil:
			if m == src {
				m = &w.Pictures[0]
				raster.CopyPixels(m, src)
			}
			e.InPlace(e, w, m)
		}
	}
	return m
}
