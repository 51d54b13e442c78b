package transform

import (
	"fmt"
	"slices"
	"strings"
)

// The dialects: whose arithmetic an op repeats, that of torchvision's functions on PIL images or that of those on 8-bit
// tensors.
const (
	pilDialect    = "pil"
	tensorDialect = "tensor"
)

// alike are the ops that do the same in both dialects: they move pixels, or set them, or torchvision makes tensors of
// PIL images for them. They carry none.
var alike = strings.Fields(`AugMix CenterCrop Compose ElasticTransform FiveCrop GaussianBlur GaussianNoise Identity JPEG Pad RandomApply RandomChannelPermutation RandomChoice RandomCrop
	RandomEqualize RandomErasing RandomHorizontalFlip RandomInvert RandomOrder RandomPosterize RandomVerticalFlip RandomZoomOut TenCrop`)

// bilingual is part of ops that know both dialects.
type bilingual struct {
	Dialect string `json:"dialect,omitempty"` // empty: pil
}

func (b bilingual) dialectName() string { return b.Dialect }

func (b bilingual) onTensors() bool { return b.Dialect == tensorDialect }

// readBilingual reads the dialect of an op that knows both.
func (a *arguments) readBilingual() bilingual {
	if a.readDialect() == tensorDialect {
		return bilingual{tensorDialect}
	}
	return bilingual{}
}

// readDialect reads whose arithmetic is meant; left out, it is pil.
func (a *arguments) readDialect() string {
	raw, ok := a.takeArgument("dialect")
	if !ok {
		return pilDialect
	}
	return a.readChoice("dialect", raw, []string{pilDialect, tensorDialect})
}

// checkDialect reads the dialect of an op that did not do so itself: it has one only, or both alike.
func (a *arguments) checkDialect() {
	if slices.Contains(a.known, "dialect") {
		return
	}
	if a.readDialect() == tensorDialect && !slices.Contains(alike, a.op) {
		a.refuseArgument("dialect", fmt.Sprintf("%s is not offered yet on tensors", a.op), pilDialect)
	}
}
