package transform

import (
	"testing"
)

func TestNoiseAllocatesNothing(t *testing.T) {
	allocatesNothing(t, `{"op":"GaussianNoise","sigma":0.2},{"op":"RandomApply","transforms":[{"op":"GaussianNoise"}]}`)
}
