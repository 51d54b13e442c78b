package transform

import (
	"errors"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/resize"
)

// readMaskFill reads the argument mask_fill, which every op with a fill may have: what it puts around masks, where that
// is another value than it puts around pictures. Nil: the same.
func (a *arguments) readMaskFill() *byte {
	raw, ok := a.raw["mask_fill"]
	if !ok || !slices.Contains(a.known, "fill") {
		return nil
	}
	a.takeArgument("mask_fill")
	v := byte(a.readCount("mask_fill", raw, 0, 255))
	return &v
}

// ForMasks is the chain that does to masks what this one does to their pictures, with the same draws: what moves pixels
// takes the nearest one, in torch's arithmetic, and what changes colours does nothing, as in torchvision.transforms.v2
// with tv_tensors.Mask. An error is a *PlanError.
func (c Chain) ForMasks() (Chain, error) {
	m := Chain{steps: slices.Clone(c.steps)}
	for i := range m.steps {
		s := &m.steps[i]
		o, err := s.forMasks()
		if err != nil {
			return Chain{}, &PlanError{Step: i, Op: s.name, Problem: err.Error()}
		}
		s.op = o
	}
	return m, nil
}

// forMasks is the op that does the same to masks. Its draws are of the same key.
func (s *step) forMasks() (op, error) {
	switch o := s.op.(type) {
	case *centerCrop, *randomHorizontalFlip, *randomVerticalFlip, identity:
		return o, nil
	case *resizeOp, *randomResizedCrop, *randomResize, *randomShortestSize, *scaleJitter:
		return resizeMasks(o), nil
	case *pad, *randomCrop, *randomZoomOut:
		return s.padMasks()
	case *randomRotation, *randomAffine, *randomPerspective, *elasticTransform:
		return s.warpMasks()
	case *randomApply, *randomChoice, *randomOrder, *compose:
		return containMasks(o)
	case *randAugment, *trivialAugmentWide, *autoAugment, *augMix, *ctAugment, *timmPolicy, *timmMix,
		*timmResize, *timmCrop, *timmTrim, *corners:
		return nil, errors.New("does not work on masks")
	}
	return identity{}, nil // colours
}

func resizeMasks(o op) op {
	switch o := o.(type) {
	case *resizeOp:
		m := *o
		m.method = o.onMasks()
		return &m
	case *randomResizedCrop: // its own interpolation is not asked
		m := *o
		m.method = method{Dialect: tensorDialect, Interpolation: resize.Nearest}
		return &m
	case *randomResize:
		m := *o
		m.method = o.onMasks()
		return &m
	case *randomShortestSize:
		m := *o
		m.method = o.onMasks()
		return &m
	case *scaleJitter:
		m := *o
		m.method = o.onMasks()
		return &m
	}
	return o
}

func (s *step) padMasks() (op, error) {
	switch o := s.op.(type) {
	case *pad:
		m := *o
		return &m, s.oneFill(&m.Fill)
	case *randomCrop:
		m := *o
		return &m, s.oneFill(&m.Fill)
	case *randomZoomOut:
		m := *o
		return &m, s.oneFill(&m.Fill)
	}
	return s.op, nil
}

// oneFill makes a colour that of masks: one number.
func (s *step) oneFill(fill *[3]byte) error {
	if v := s.maskFill; v != nil {
		*fill = [3]byte{*v, *v, *v}
	}
	if fill[0] != fill[1] || fill[0] != fill[2] {
		return errMaskFill
	}
	return nil
}

var errMaskFill = errors.New("fill has three numbers, and masks have one: give mask_fill")

func (s *step) warpMasks() (op, error) {
	switch o := s.op.(type) {
	case *randomRotation:
		if o.Expand {
			return nil, errors.New("expand makes masks of another size than pictures, in torchvision too")
		}
		m := *o
		m.Interpolation, m.Dialect = resize.Nearest, tensorDialect
		return &m, s.onePaint(&m.Fill)
	case *randomAffine:
		m := *o
		m.Interpolation, m.Dialect = resize.Nearest, tensorDialect
		return &m, s.onePaint(&m.Fill)
	case *randomPerspective:
		m := *o
		m.Interpolation, m.Dialect = resize.Nearest, tensorDialect
		return &m, s.onePaint(&m.Fill)
	case *elasticTransform:
		m := *o
		m.Interpolation = resize.Nearest
		return &m, s.onePaint(&m.Fill)
	}
	return s.op, nil
}

// onePaint is oneFill for warps.
func (s *step) onePaint(fill **[3]float64) error {
	if v := s.maskFill; v != nil {
		*fill = &[3]float64{float64(*v), float64(*v), float64(*v)}
	}
	if f := *fill; f != nil && (f[0] != f[1] || f[0] != f[2]) {
		return errMaskFill
	}
	return nil
}

func containMasks(o op) (op, error) {
	var err error
	switch o := o.(type) {
	case *randomApply:
		m := *o
		m.Transforms, err = o.Transforms.ForMasks()
		return &m, err
	case *randomChoice:
		m := *o
		m.Transforms, err = o.Transforms.ForMasks()
		return &m, err
	case *randomOrder:
		m := *o
		m.Transforms, err = o.Transforms.ForMasks()
		return &m, err
	case *compose:
		m := *o
		m.Transforms, err = o.Transforms.ForMasks()
		return &m, err
	}
	return o, nil
}
