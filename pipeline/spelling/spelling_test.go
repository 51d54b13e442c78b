package spelling

import (
	"strings"
	"testing"
)

func TestEdits(t *testing.T) {
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"abc", ""}: 3, {"", "abc"}: 3, {"kitten", "sitting"}: 3, {"flaw", "lawn"}: 2, {strings.Repeat("a", 100), strings.Repeat("a", 64)}: 36,
	} {
		if got := Edits(pair[0], pair[1]); got != want {
			t.Errorf("%q: %d, want %d", pair, got, want)
		}
	}
}

func TestNearestClass(t *testing.T) {
	names := []string{
		"CenterCrop", "ColorJitter", "FiveCrop", "GaussianBlur", "JPEG", "Pad", "RandomCrop", "RandomHorizontalFlip", "RandomInvert", "RandomResize",
		"RandomResizedCrop", "RandomRotation", "RandomShortestSize", "RandomSolarize", "Resize", "TenCrop",
	}
	for wrong, want := range map[string]string{
		"RandomCropResize": "RandomResizedCrop", "RandomCropResized": "RandomResizedCrop", "ResizedCrop": "RandomResizedCrop", "random_resized_crop": "RandomResizedCrop",
		"RandomResizeCrop": "RandomResizedCrop", "RandomResizd": "RandomResize", "Crop": "CenterCrop", "HorizontalFlip": "RandomHorizontalFlip", "Resise": "Resize",
		"JitterColor": "ColorJitter", "Blur": "GaussianBlur", "Rotate": "RandomRotation", "Jpeg": "JPEG", "resize": "Resize", "RandomSolarise": "RandomSolarize",
		"Padd": "Pad", "Invert": "RandomInvert", "TenCrops": "TenCrop",
	} {
		if got := NearestClass(wrong, names); got != want {
			t.Errorf("%q: %s, want %s", wrong, got, want)
		}
	}
	if got := NearestClass("x", nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}
