package transform

import (
	"encoding/json"
	"fmt"
	"image"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/spelling"
)

type autoAugment struct {
	Policy        string      `json:"policy"`
	Interpolation string      `json:"interpolation"`
	Fill          *[3]float64 `json:"fill"`
	policyDialect
	generation

	pairs [][2]chance
}

// A chance is an op of a policy that comes with a probability, at one of ten bins.
type chance struct {
	name string
	p    float32
	bin  int
}

func newAutoAugment(a *arguments) op {
	o := &autoAugment{Policy: readPolicyName(a), Interpolation: a.readWarpFilter("nearest"), Fill: a.readPaint(nil)}
	o.policyDialect = readPolicyDialect(a, o.Interpolation)
	o.generation = readGeneration(a, o.policyDialect)
	o.pairs = parsePolicy(policies[o.Policy])
	return o
}

func readPolicyName(a *arguments) string {
	const standard = "imagenet"
	raw, ok := a.takeArgument("policy")
	if !ok {
		return standard
	}
	var name string
	if err := json.Unmarshal(raw, &name); err != nil || policies[name] == "" {
		a.refuseArgument("policy", fmt.Sprintf("no such policy, got %s", shortenText(raw)), spelling.NearestClass(name, slices.Sorted(maps.Keys(policies))))
		return standard
	}
	return name
}

func (o *autoAugment) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

// drawParameters takes the pair from block 0; for its op k, whether it comes and its sign from block 1+k.
func (o *autoAugment) drawParameters(d rng, p *program, rec *Draw) error {
	told, b, within := newReport[policyOp](rec), o.warpSampling(o.Interpolation, o.Fill), o.applyTo(usual)
	pair := &o.pairs[order.Below(d.Block(0)[0], uint32(len(o.pairs)))] //nolint:gosec // 25
	for k, c := range pair {
		x := d.Block(1 + uint32(k)) //nolint:gosec // 0 or 1
		if order.Unit(x[0]) > c.p {
			continue
		}
		t := within.policyOpAt(c.name, c.bin, 10, drawNegative(x[1]), p.currentSize())
		told.addOp(t)
		if err := p.addPolicyOp(t, b); err != nil {
			return err
		}
	}
	told.writeDraw()
	return nil
}

// parsePolicy reads pairs of op, probability and bin.
func parsePolicy(text string) [][2]chance {
	words := strings.Fields(text)
	pairs := make([][2]chance, len(words)/6)
	for i := range len(words) / 3 {
		p, errP := strconv.ParseFloat(words[3*i+1], 64)
		bin, errBin := strconv.Atoi(words[3*i+2])
		if errP != nil || errBin != nil {
			panic("transform: a policy of torchvision's is misspelled at " + words[3*i])
		}
		pairs[i/2][i%2] = chance{words[3*i], float32(p), bin}
	}
	return pairs
}

// policies are those of the AutoAugment paper, as torchvision has them: op, probability, bin; two to a pair.
var policies = map[string]string{
	"imagenet": `
		Posterize 0.4 8  Rotate 0.6 9   Solarize 0.6 5  AutoContrast 0.6 0   Equalize 0.8 0  Equalize 0.6 0
		Posterize 0.6 7  Posterize 0.6 6   Equalize 0.4 0  Solarize 0.2 4   Equalize 0.4 0  Rotate 0.8 8
		Solarize 0.6 3  Equalize 0.6 0   Posterize 0.8 5  Equalize 1 0   Rotate 0.2 3  Solarize 0.6 8
		Equalize 0.6 0  Posterize 0.4 6   Rotate 0.8 8  Color 0.4 0   Rotate 0.4 9  Equalize 0.6 0
		Equalize 0 0  Equalize 0.8 0   Invert 0.6 0  Equalize 1 0   Color 0.6 4  Contrast 1 8
		Rotate 0.8 8  Color 1 2   Color 0.8 8  Solarize 0.8 7   Sharpness 0.4 7  Invert 0.6 0
		ShearX 0.6 5  Equalize 1 0   Color 0.4 0  Equalize 0.6 0   Equalize 0.4 0  Solarize 0.2 4
		Solarize 0.6 5  AutoContrast 0.6 0   Invert 0.6 0  Equalize 1 0   Color 0.6 4  Contrast 1 8
		Equalize 0.8 0  Equalize 0.6 0
	`,
	"cifar10": `
		Invert 0.1 0  Contrast 0.2 6   Rotate 0.7 2  TranslateX 0.3 9   Sharpness 0.8 1  Sharpness 0.9 3
		ShearY 0.5 8  TranslateY 0.7 9   AutoContrast 0.5 0  Equalize 0.9 0   ShearY 0.2 7  Posterize 0.3 7
		Color 0.4 3  Brightness 0.6 7   Sharpness 0.3 9  Brightness 0.7 9   Equalize 0.6 0  Equalize 0.5 0
		Contrast 0.6 7  Sharpness 0.6 5   Color 0.7 7  TranslateX 0.5 8   Equalize 0.3 0  AutoContrast 0.4 0
		TranslateY 0.4 3  Sharpness 0.2 6   Brightness 0.9 6  Color 0.2 8   Solarize 0.5 2  Invert 0 0
		Equalize 0.2 0  AutoContrast 0.6 0   Equalize 0.2 0  Equalize 0.6 0   Color 0.9 9  Equalize 0.6 0
		AutoContrast 0.8 0  Solarize 0.2 8   Brightness 0.1 3  Color 0.7 0   Solarize 0.4 5  AutoContrast 0.9 0
		TranslateY 0.9 9  TranslateY 0.7 9   AutoContrast 0.9 0  Solarize 0.8 3   Equalize 0.8 0  Invert 0.1 0
		TranslateY 0.7 9  AutoContrast 0.9 0
	`,
	"svhn": `
		ShearX 0.9 4  Invert 0.2 0   ShearY 0.9 8  Invert 0.7 0   Equalize 0.6 0  Solarize 0.6 6
		Invert 0.9 0  Equalize 0.6 0   Equalize 0.6 0  Rotate 0.9 3   ShearX 0.9 4  AutoContrast 0.8 0
		ShearY 0.9 8  Invert 0.4 0   ShearY 0.9 5  Solarize 0.2 6   Invert 0.9 0  AutoContrast 0.8 0
		Equalize 0.6 0  Rotate 0.9 3   ShearX 0.9 4  Solarize 0.3 3   ShearY 0.8 8  Invert 0.7 0
		Equalize 0.9 0  TranslateY 0.6 6   Invert 0.9 0  Equalize 0.6 0   Contrast 0.3 3  Rotate 0.8 4
		Invert 0.8 0  TranslateY 0 2   ShearY 0.7 6  Solarize 0.4 8   Invert 0.6 0  Rotate 0.8 4
		ShearY 0.3 7  TranslateX 0.9 3   ShearX 0.1 6  Invert 0.6 0   Solarize 0.7 2  TranslateY 0.6 7
		ShearY 0.8 4  Invert 0.8 0   ShearX 0.7 9  TranslateY 0.8 3   ShearY 0.8 5  AutoContrast 0.7 0
		ShearX 0.7 2  Invert 0.1 0
	`,
}
