package transform

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/spelling"
)

// ops has every op that is offered. Its function reads the arguments, in torchvision's order.
var ops = map[string]func(a *arguments) op{
	"AugMix":               newAugMix,
	"AutoAugment":          newAutoAugment,
	"CTAugment":            newCTAugment,
	"CenterCrop":           newCenterCrop,
	"RandAugment":          newRandAugment,
	"RandomAffine":         newRandomAffine,
	"RandomHorizontalFlip": newRandomHorizontalFlip,
	"RandomPerspective":    newRandomPerspective,
	"RandomResizedCrop":    newRandomResizedCrop,
	"RandomRotation":       newRandomRotation,
	"Pad":                  newPad,
	"RandomCrop":           newRandomCrop,
	"RandomErasing":        newRandomErasing,
	"RandomResize":         newRandomResize,
	"RandomShortestSize":   newRandomShortestSize,
	"RandomVerticalFlip":   newRandomVerticalFlip,
	"RandomZoomOut":        newRandomZoomOut,
	"Resize":               newResize,
	"TrivialAugmentWide":   newTrivialAugmentWide,

	"ColorJitter":              newColorJitter,
	"ElasticTransform":         newElasticTransform,
	"FiveCrop":                 newFiveCrop,
	"GaussianBlur":             newGaussianBlur,
	"GaussianNoise":            newGaussianNoise,
	"Grayscale":                newGrayscale,
	"JPEG":                     newJPEG,
	"RandomAdjustSharpness":    newRandomAdjustSharpness,
	"RandomAutocontrast":       newRandomAutocontrast,
	"RandomChannelPermutation": newRandomChannelPermutation,
	"RandomEqualize":           newRandomEqualize,
	"RandomGrayscale":          newRandomGrayscale,
	"RandomInvert":             newRandomInvert,
	"RandomPhotometricDistort": newRandomPhotometricDistort,
	"RandomPosterize":          newRandomPosterize,
	"RandomSolarize":           newRandomSolarize,

	"Compose":      newCompose,
	"Identity":     newIdentity,
	"RandomApply":  newRandomApply,
	"RandomChoice": newRandomChoice,
	"RandomOrder":  newRandomOrder,
	"ScaleJitter":  newScaleJitter,
	"TenCrop":      newTenCrop,
	"TimmCrop":     newTimmCrop,
	"TimmMix":      newTimmMix,
	"TimmPolicy":   newTimmPolicy,
	"TimmResize":   newTimmResize,
	"TimmTrim":     newTimmTrim,
}

// notYet are the other classes of torchvision.transforms.v2 that take images.
var notYet = strings.Fields(`CutMix MixUp Normalize PILToTensor RandomIoUCrop RGB
	ToDtype ToImage ToPILImage ToPureTensor ToTensor`)

// Parse reads a plan's transforms, as {"op": "RandomResizedCrop", "size": 224}. Arguments that are left out take
// torchvision's defaults. An error is a *PlanError.
func Parse(transforms []json.RawMessage) (Chain, error) {
	if len(transforms) > maxSteps {
		return Chain{}, &PlanError{Step: maxSteps, Problem: fmt.Sprintf("a plan has at most %d transforms", maxSteps)}
	}
	c, err := parseSteps(transforms, 0)
	if err != nil {
		return Chain{}, err
	}
	if n := c.countOps(); n > maxOps {
		return Chain{}, &PlanError{Problem: fmt.Sprintf("a plan has at most %d transforms, those inside others counted; these are %d", maxOps, n)}
	}
	return c, nil
}

// parseSteps parses the transforms of a plan, or those inside an op, depth ops deep. Sizes are known only in a plan.
func parseSteps(transforms []json.RawMessage, depth int) (Chain, *PlanError) {
	var c Chain
	seen := map[string]int{}
	for i, raw := range transforms {
		s, err := parseOp(i, raw, depth)
		if err != nil {
			return Chain{}, err
		}
		s.path = fmt.Sprintf("%s/%d", s.name, seen[s.name])
		seen[s.name]++
		c.steps = append(c.steps, s)
		if h, w, fixed := c.OutputSize(); depth == 0 && fixed && (min(h, w) < 1 || max(h, w) > MaxSide) {
			problem := fmt.Sprintf("makes pictures of %d×%d pixels here; a side has 1 to %d", w, h, MaxSide)
			return Chain{}, &PlanError{Step: i, Op: s.name, Problem: problem}
		}
	}
	if err := c.checkLast(); err != nil {
		return Chain{}, err
	}
	return c, nil
}

// parseOp reads the transform at a place of its list.
func parseOp(i int, raw json.RawMessage, depth int) (step, *PlanError) {
	a := &arguments{step: i, depth: depth, parse: parseSteps}
	if err := json.Unmarshal(raw, &a.raw); err != nil || a.raw == nil {
		return step{}, &PlanError{Step: i, Problem: "must be an object with a member op", Nearest: `{"op":"Resize","size":256}`}
	}
	names := slices.Sorted(maps.Keys(ops))
	if err := json.Unmarshal(a.raw["op"], &a.op); err != nil || a.op == "" {
		return step{}, &PlanError{Step: i, Argument: "op", Problem: "must name a transform", Nearest: strings.Join(names, ", ")}
	}
	delete(a.raw, "op")
	read := ops[a.op]
	if read == nil {
		problem, near := "no such transform", spelling.NearestClass(a.op, names)
		if slices.Contains(notYet, a.op) {
			problem, near = "not offered yet", strings.Join(names, ", ")
		}
		return step{}, &PlanError{Step: i, Op: shortenText(a.op), Problem: problem, Nearest: near}
	}
	o := read(a)
	a.checkDialect()
	fill := a.readMaskFill()
	if err := a.firstError(); err != nil {
		return step{}, err
	}
	return step{op: o, name: a.op, maskFill: fill}, nil
}

// checkLast refuses a node's op behind an op of the last hop, which is done after all others: rectangles that it erases
// would not move with the pixels. It also refuses any op behind one that makes several pictures.
func (c Chain) checkLast() *PlanError {
	if err := c.checkCorners(); err != nil {
		return err
	}
	for i := 1; i < len(c.steps); i++ {
		if placeOf(c.steps[i-1].op) == lastHop && placeOf(c.steps[i].op) != lastHop {
			return &PlanError{Step: i, Op: c.steps[i].name, Problem: "must stand before " + c.steps[i-1].name + ", which is done last"}
		}
	}
	return nil
}
