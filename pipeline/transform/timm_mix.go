package transform

import (
	"encoding/json"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// timmMix is AugMix as timm has it: a picture is mixed with what some chains of timm's ops make of it. What they do is Pillow's.
type timmMix struct {
	Ops []timmOp `json:"ops"` // chosen evenly, again and again
	mixture
	Blended bool `json:"blended"` // the picture is moved towards each chain in turn, not once towards their sum
	timmSpace
}

// mostOfMix is the magnitude below which rotations are by less than a quarter.
const mostOfMix = 29

func newTimmMix(a *arguments) op {
	o := &timmMix{mixture: readMixture(a)}
	raw, ok := a.takeArgument("ops")
	var list [][]json.RawMessage
	if err := json.Unmarshal(raw, &list); !ok || err != nil || len(list) == 0 || len(list) > mostTimmOps {
		a.refuseArgument("ops", fmt.Sprintf("must be a list of 1 to %d ops, got %s", mostTimmOps, shortenText(raw)), [][]any{{"Rotate", 1, 3}})
	}
	o.Ops = parseTimmOps(a, "ops", list)
	o.Blended, o.timmSpace = a.readBool("blended", false), readTimmSpace(a, mostOfMix)
	return o
}

func (o *timmMix) outputSize(size image.Point, fixed bool) (image.Point, bool) { return size, fixed }

func (o *timmMix) drawParameters(d rng, p *program, rec *Draw) error {
	if rec != nil {
		o.tellChains(d.RNG, rec)
	}
	return p.addEffect(raster.Effect{Across: mixTimmChains, Op: o, RNG: d.RNG, Steps: o.steps()}, p.currentSize())
}

func (o *timmMix) tellChains(d raster.RNG, rec *Draw) {
	type chain struct {
		Weight float64       `json:"weight"`
		Ops    []drawnTimmOp `json:"ops"`
	}
	share, weights := o.drawWeights(d)
	chains := make([]chain, o.Width)
	for i := range chains {
		chains[i] = chain{float64(weights[i]), []drawnTimmOp{}}
		for k := range o.depthOf(d, i) {
			if t, comes := o.drawChained(d, i, k); comes {
				chains[i].Ops = append(chains[i].Ops, t)
			}
		}
	}
	rec.Parameters = marshalCanonical(struct {
		Share  float64 `json:"weight"`
		Chains []chain `json:"chains"`
	}{float64(share), chains})
}

// drawWeights are the share of the mixture, of a beta distribution, and those of the chains in it, of Dirichlet's.
func (o *timmMix) drawWeights(d raster.RNG) (share float32, chains [mostChains]float32) {
	a, b, g, sum := o.drawVariates(d)
	for i := range o.Width {
		chains[i] = float32(g[i] / sum)
	}
	return float32(a / (a + b)), chains
}

func (o *timmMix) depthOf(d raster.RNG, i int) int {
	return o.drawDepth(d.Block(chainBlock(i) + 2*deepest)[0])
}

// drawChained is op k of chain i, and whether it comes. Its two blocks are as those of a policy's op; which it is comes from the second.
func (o *timmMix) drawChained(d raster.RNG, i, k int) (t drawnTimmOp, comes bool) {
	first := chainBlock(i) + 2*uint32(k) //nolint:gosec // small
	x, y := d.Block(first), d.Block(first+1)
	op := o.Ops[order.Below(y[2], uint32(len(o.Ops)))] //nolint:gosec // at most 64
	return o.drawOp(op, x, y), op.comes(x)
}

// mixTimmChains runs the chains one after the other.
func mixTimmChains(e *raster.Effect, w *raster.Workspace, dst, src *pixel.Image) {
	o := e.Op.(*timmMix) //nolint:forcetypeassert // its own effect
	share, weights := o.drawWeights(e.RNG)
	for y := range src.H {
		copy(dst.Row(y), src.Row(y))
	}
	if o.Blended {
		shares := sharesInTurn(weights, o.Width, share)
		for i, s := range shares[:o.Width] {
			raster.Blend(w, dst, o.runChain(e.RNG, i, w, src), s)
		}
		return
	}
	n := 3 * src.W
	w.Sums = pixel.Grow(w.Sums, n*src.H)
	for i := range o.Width {
		m := o.runChain(e.RNG, i, w, src)
		for y := 0; y < src.H && !w.IsStopped(); y++ {
			raster.AddWeighted(w.Sums[y*n:], m.Row(y), weights[i], i > 0)
		}
	}
	if w.IsStopped() {
		return
	}
	mixed := &w.Pictures[0]
	mixed.Reset(src.W, src.H)
	for y := range src.H {
		sums := w.Sums[y*n:][:n]
		for i := range mixed.Row(y)[:n] {
			mixed.Row(y)[i] = byte(int32(min(max(sums[i], 0), 255)))
		}
	}
	raster.Blend(w, dst, mixed, share)
}

// sharesInTurn are the shares by which a picture is moved towards one chain after the other, in timm's float32.
func sharesInTurn(weights [mostChains]float32, width int, share float32) [mostChains]float32 {
	left := float32(1)
	for i := width - 1; i >= 0; i-- {
		weights[i] = float32(weights[i]*share) / left
		left *= 1 - weights[i]
	}
	return weights
}

// runChain returns what chain i makes of src, in memory of w or src itself.
func (o *timmMix) runChain(d raster.RNG, i int, w *raster.Workspace, src *pixel.Image) *pixel.Image {
	size := image.Pt(src.W, src.H)
	return runEffects(w, src, o.depthOf(d, i), func(k int) raster.Effect {
		t, comes := o.drawChained(d, i, k)
		if !comes {
			return raster.Effect{}
		}
		return t.effect(raster.Sampling{Interpolation: t.Interpolation, Fill: o.Fill}, size)
	})
}
