package transform

import (
	"encoding/json"
	"fmt"
	"image"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/internal/trig"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// timmPolicy is RandAugment or AutoAugment as timm has them: some groups of ops, chosen evenly and again and again, or by weights and each once.
// Each op comes with its probability, at its magnitude or at one near it, with one of some filters. What it does is Pillow's.
type timmPolicy struct {
	Layers  int        `json:"layers"` // how many groups are chosen
	Groups  [][]timmOp `json:"groups"`
	Weights []float64  `json:"weights,omitempty"` // of groups, none of which is chosen twice then; nil: all alike
	timmSpace
}

// timmSpace says what magnitudes of ops stand for.
type timmSpace struct {
	Std    *float64    `json:"std"`            // of a magnitude, which is normal around the op's own; nil: even from 0 to that
	Most   float64     `json:"most_magnitude"` // and is cut to that
	Pixels float64     `json:"translate_const"`
	Share  float64     `json:"translate_pct"`
	Filter []string    `json:"interpolation"` // one is chosen for each op
	Fill   *[3]float64 `json:"fill"`
}

// timmOp is an op of it, [name, probability, magnitude].
type timmOp struct {
	name         string
	p, magnitude float64
}

// MarshalJSON writes it as plans have it.
func (o timmOp) MarshalJSON() ([]byte, error) { return json.Marshal([]any{o.name, o.p, o.magnitude}) }

const (
	mostTimmOps = 64
	// timmLevels is how many magnitudes timm divides what an op does into.
	timmLevels = 10
)

func newTimmPolicy(a *arguments) op {
	o := &timmPolicy{Layers: a.readWithin("layers", 2, 0, mostTimmOps)}
	o.Groups = readTimmGroups(a)
	o.Weights = a.readNumbers("weights", 0, maxFactor, len(o.Groups))
	if o.Weights != nil && o.Layers > countWeighty(o.Weights) {
		a.refuseArgument("weights", fmt.Sprintf("no group is chosen twice, so %d of them need a weight above 0", o.Layers), nil)
	}
	o.timmSpace = readTimmSpace(a, MaxSide)
	return o
}

// readTimmSpace reads it, with magnitudes of at most so much.
func readTimmSpace(a *arguments, most float64) timmSpace {
	s := timmSpace{Most: timmLevels, Pixels: 250, Share: 0.45}
	if raw, ok := a.takeArgument("std"); !ok {
		s.Std = new(float64)
	} else if !isNull(raw) {
		std := a.parseNumber("std", raw, 0, 100)
		s.Std = &std
	}
	if raw, ok := a.takeArgument("most_magnitude"); ok {
		s.Most = a.parseNumber("most_magnitude", raw, 0, most)
	}
	for name, to := range map[string]*float64{"translate_const": &s.Pixels, "translate_pct": &s.Share} {
		if raw, ok := a.takeArgument(name); ok {
			*to = a.parseNumber(name, raw, 0, MaxSide)
		}
	}
	s.Filter, s.Fill = readTimmFilters(a), a.readPaint(&[3]float64{128, 128, 128})
	return s
}

func countWeighty(weights []float64) (n int) {
	for _, w := range weights {
		if w > 0 {
			n++
		}
	}
	return n
}

func readTimmFilters(a *arguments) []string {
	all := []string{"bilinear", "bicubic"}
	raw, ok := a.takeArgument("interpolation")
	if !ok {
		return all
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 || len(list) > len(all)+1 {
		a.refuseArgument("interpolation", fmt.Sprintf("must be a list of filters, got %s", shortenText(raw)), all)
		return all
	}
	filters := make([]string, len(list))
	for i, x := range list {
		filters[i] = a.readChoice("interpolation", x, []string{"bilinear", "bicubic", "nearest"})
	}
	return filters
}

// readTimmGroups reads lists of ops.
func readTimmGroups(a *arguments) [][]timmOp {
	example := [][]timmOp{{{"Rotate", 0.5, 9}}}
	raw, ok := a.takeArgument("groups")
	var list [][][]json.RawMessage
	if err := json.Unmarshal(raw, &list); !ok || err != nil || len(list) == 0 || len(list) > mostTimmOps {
		a.refuseArgument("groups", fmt.Sprintf("must be a list of at most %d lists of ops, got %s", mostTimmOps, shortenText(raw)), example)
		return nil
	}
	groups := make([][]timmOp, len(list))
	for i, group := range list {
		if len(group) == 0 || len(group) > 8 {
			a.refuseArgument("groups", fmt.Sprintf("a group has 1 to 8 ops, and this one %d", len(group)), example)
		}
		groups[i] = parseTimmOps(a, "groups", group)
	}
	return groups
}

// parseTimmOps reads the ops of an argument, each of which is a list.
func parseTimmOps(a *arguments, argument string, rows [][]json.RawMessage) (ops []timmOp) {
	for _, row := range rows {
		if len(row) != 3 {
			a.refuseArgument(argument, "an op is a list of name, probability and magnitude", []any{"Rotate", 0.5, 9})
			return nil
		}
		name := a.readChoice(argument, row[0], timmNames)
		ops = append(ops, timmOp{name, a.parseNumber(argument, row[1], 0, 1), a.parseNumber(argument, row[2], 0, MaxSide)})
	}
	return ops
}

func (o *timmPolicy) outputSize(size image.Point, fixed bool) (image.Point, bool) { return size, fixed }

// drawParameters takes the group of layer k from block 17k. Of the group's op i block 17k+2i+1 says whether it comes, its magnitude and its sign,
// and block 17k+2i+2 its filter.
func (o *timmPolicy) drawParameters(d rng, p *program, rec *Draw) error {
	told := newReport[drawnTimmOp](rec)
	var taken [mostTimmOps]bool
	for k := range o.Layers {
		first := 17 * uint32(k) //nolint:gosec // at most 64
		group := o.Groups[o.chooseGroup(d.Block(first)[0], &taken)]
		for i, op := range group {
			x := d.Block(first + 2*uint32(i) + 1) //nolint:gosec // at most 8
			if !op.comes(x) {
				continue
			}
			t := o.drawOp(op, x, d.Block(first+2*uint32(i)+2)) //nolint:gosec // likewise
			told.addOp(t)
			if err := p.addTimmOp(t, raster.Sampling{Interpolation: t.Interpolation, Fill: o.Fill}); err != nil {
				return err
			}
		}
	}
	told.writeDraw()
	return nil
}

// chooseGroup is the group that a random word stands for. With weights it is one that was not taken, and is taken then.
func (o *timmPolicy) chooseGroup(word uint32, taken *[mostTimmOps]bool) int {
	if o.Weights == nil {
		return int(order.Below(word, uint32(len(o.Groups)))) //nolint:gosec // at most 64
	}
	left := 0.0
	for i, w := range o.Weights {
		if !taken[i] {
			left += w
		}
	}
	at, chosen := float64(left*float64(order.Unit(word))), 0
	for i, w := range o.Weights {
		if taken[i] || w == 0 {
			continue
		}
		chosen = i
		if at < w {
			break
		}
		at -= w
	}
	taken[chosen] = true
	return chosen
}

// comes tells whether an op is one of those that do.
func (o timmOp) comes(x [4]uint32) bool { return o.p >= 1 || float64(order.Unit(x[0])) < o.p }

// drawOp is an op with the argument that its magnitude stands for, by x, and a filter, by y. A random radius is drawn by y too.
func (o *timmSpace) drawOp(op timmOp, x, y [4]uint32) drawnTimmOp {
	m := op.magnitude
	switch {
	case o.Std == nil:
		m = float64(m * float64(order.Unit(x[1])))
	case *o.Std > 0:
		m += float64(*o.Std * normalOf(x[1], x[2]))
	}
	level := max(0, min(m, o.Most)) / timmLevels
	sign := 1.0
	if order.Unit(x[3]) > 0.5 {
		sign = -1
	}
	argument := o.argumentOf(op.name, level, sign)
	if op.name == "GaussianBlurRand" {
		argument = drawBetween(leastBlur, argument, y[1])
	}
	return drawnTimmOp{op.name, argument, o.Filter[order.Below(y[0], uint32(len(o.Filter)))]} //nolint:gosec // few
}

// normalOf is a number of the normal distribution, by Box and Muller.
func normalOf(x, y uint32) float64 {
	radius := math.Sqrt(float64(-2 * order.Log(1-float64(order.Unit(x)))))
	return float64(radius * trig.Cos(float64(2*math.Pi*float64(order.Unit(y)))))
}

// timmNames are the ops that are there.
var timmNames = []string{
	"AutoContrast", "Equalize", "Invert", "Rotate", "Posterize", "PosterizeIncreasing", "PosterizeOriginal", "Solarize",
	"SolarizeIncreasing", "SolarizeAdd", "Color", "ColorIncreasing", "Contrast", "ContrastIncreasing", "Brightness", "BrightnessIncreasing",
	"Sharpness", "SharpnessIncreasing", "ShearX", "ShearY", "TranslateX", "TranslateY", "TranslateXRel", "TranslateYRel", "Desaturate",
	"GaussianBlur", "GaussianBlurRand",
}

// leastBlur is the smallest radius that timm draws.
const leastBlur = 0.1

// argumentOf is what timm gives the function of an op for a share of its levels, in its order of operations; 0 where it gives none.
func (o *timmSpace) argumentOf(name string, level, sign float64) float64 {
	switch name {
	case "Rotate":
		return sign * float64(level*30)
	case "Posterize":
		return math.Trunc(float64(level * 4))
	case "PosterizeIncreasing":
		return 4 - math.Trunc(float64(level*4))
	case "PosterizeOriginal":
		return 4 + math.Trunc(float64(level*4))
	case "Solarize":
		return min(256, math.Trunc(float64(level*256)))
	case "SolarizeIncreasing":
		return 256 - min(256, math.Trunc(float64(level*256)))
	case "SolarizeAdd":
		return min(128, math.Trunc(float64(level*110)))
	case "Color", "Contrast", "Brightness", "Sharpness":
		return float64(level*1.8) + 0.1
	case "ColorIncreasing", "ContrastIncreasing", "BrightnessIncreasing", "SharpnessIncreasing":
		return max(0.1, 1+float64(sign*float64(level*0.9)))
	case "ShearX", "ShearY":
		return sign * float64(level*0.3)
	case "TranslateX", "TranslateY":
		return sign * float64(level*o.Pixels)
	case "TranslateXRel", "TranslateYRel":
		return sign * float64(level*o.Share)
	case "Desaturate":
		return max(0.5, min(1, 0.5+float64(0.5*level)))
	case "GaussianBlur":
		return max(leastBlur, min(2, leastBlur+float64((2-leastBlur)*level)))
	case "GaussianBlurRand":
		return 2 * min(1, level)
	}
	return 0
}

// drawnTimmOp is an op as it was drawn.
type drawnTimmOp struct {
	Name          string  `json:"name"`
	Argument      float64 `json:"magnitude"`
	Interpolation string  `json:"interpolation"`
}

func (drawnTimmOp) isIdentity() bool { return false }

// addTimmOp adds one to the program.
func (p *program) addTimmOp(t drawnTimmOp, b raster.Sampling) error {
	if t.Name == "Rotate" {
		return p.addRotation(t.Argument, b, false, nil)
	}
	if e := t.effect(b, p.currentSize()); !e.IsNone() {
		return p.addEffect(e, p.currentSize())
	}
	return nil
}

// effect is what it does to a picture of that size, where it rotates by less than a quarter.
func (t drawnTimmOp) effect(b raster.Sampling, size image.Point) raster.Effect {
	x := t.Argument
	switch t.Name {
	case "Rotate":
		if x == 0 {
			return raster.Effect{}
		}
		m, _ := raster.RotationMatrix(trig.Modulo360(x), size, false, nil)
		return raster.Warp(m, b, size)
	case "ShearX":
		return raster.Warp(raster.Matrix{1, x, 0, 0, 1, 0}, b, size)
	case "ShearY":
		return raster.Warp(raster.Matrix{1, 0, 0, x, 1, 0}, b, size)
	case "TranslateX":
		return raster.Warp(raster.Matrix{1, 0, x, 0, 1, 0}, b, size)
	case "TranslateY":
		return raster.Warp(raster.Matrix{1, 0, 0, 0, 1, x}, b, size)
	case "TranslateXRel":
		return raster.Warp(raster.Matrix{1, 0, float64(x * float64(size.X)), 0, 1, 0}, b, size)
	case "TranslateYRel":
		return raster.Warp(raster.Matrix{1, 0, 0, 0, 1, float64(x * float64(size.Y))}, b, size)
	}
	return t.colourEffect()
}

// colourEffect is an op of colours; none where it changes nothing.
func (t drawnTimmOp) colourEffect() raster.Effect {
	switch x := t.Argument; t.Name {
	case "AutoContrast":
		return raster.Autocontrast()
	case "Equalize":
		return raster.Equalize()
	case "Invert":
		return raster.Invert()
	case "Posterize", "PosterizeIncreasing", "PosterizeOriginal":
		if x >= 8 {
			return raster.Effect{}
		}
		return raster.Posterize(int(x))
	case "Solarize", "SolarizeIncreasing":
		return raster.Solarize(x)
	case "SolarizeAdd":
		return raster.SolarizeAdd(int(x))
	case "Color", "ColorIncreasing":
		return raster.AdjustSaturation(x)
	case "Contrast", "ContrastIncreasing":
		return raster.AdjustContrast(x)
	case "Brightness", "BrightnessIncreasing":
		return raster.AdjustBrightness(x)
	case "Desaturate":
		return raster.AdjustSaturation(min(1, max(0, 1-x)))
	case "GaussianBlur", "GaussianBlurRand":
		return raster.GaussianBlurByBoxes(x)
	default:
		return raster.AdjustSharpness(x)
	}
}
