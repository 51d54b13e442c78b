package augment

import (
	"fmt"
	"slices"
	"strings"
)

// The dialects: whose arithmetic an op repeats, that of torchvision's functions on PIL images or that of those on 8-bit tensors.
const (
	pilDialect    = "pil"
	tensorDialect = "tensor"
)

// alike are the ops that move pixels, or set them, and do the same in both dialects. They carry none.
var alike = strings.Fields(`AugMix CenterCrop Pad RandomCrop RandomErasing RandomHorizontalFlip RandomVerticalFlip RandomZoomOut`)

// dialect reads whose arithmetic is meant; left out, it is pil.
func (a *arguments) dialect() string {
	raw, ok := a.take("dialect")
	if !ok {
		return pilDialect
	}
	return a.choice("dialect", raw, []string{pilDialect, tensorDialect})
}

// settle reads the dialect of an op that did not do so itself: it has one only, or both alike.
func (a *arguments) settle() {
	if slices.Contains(a.known, "dialect") {
		return
	}
	if a.dialect() == tensorDialect && !slices.Contains(alike, a.op) {
		a.refuse("dialect", fmt.Sprintf("%s is not offered yet on tensors", a.op), pilDialect)
	}
}

// dialectOf is for explain.
func dialectOf(o op) string {
	if d, ok := o.(interface{ dialect() string }); ok && d.dialect() != "" {
		return d.dialect()
	}
	return pilDialect
}
