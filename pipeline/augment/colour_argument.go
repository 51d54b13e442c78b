package augment

import (
	"encoding/json"
	"fmt"
	"math"
)

// maxFactor is far beyond any real factor and any real weight.
const maxFactor = 1e6

// required reads a number that has no default.
func (a *arguments) required(name string, example, low, high float64) float64 {
	raw, ok := a.take(name)
	if !ok {
		a.refuse(name, "is missing", example)
		return example
	}
	return a.number(name, raw, low, high)
}

// bits reads how many bits remain, 1 to 8: Pillow knows no 0.
func (a *arguments) bits() int {
	x := a.required("bits", 4, 1, 8)
	if x != math.Trunc(x) {
		a.refuse("bits", fmt.Sprintf("must be a whole number from 1 to 8, got %v", x), math.Round(x))
	}
	return int(x)
}

// around reads the range of a factor: null, how far it may be from center, or its ends. A range of nothing but center is none.
func (a *arguments) around(name string, center, low, high float64) *[2]float64 {
	raw, ok := a.raw[name]
	if !ok || isNull(raw) {
		a.take(name)
		return nil
	}
	var ends [2]float64
	if x := 0.0; json.Unmarshal(raw, &x) == nil {
		a.take(name)
		x = a.number(name, raw, 0, high-center)
		ends = [2]float64{max(center-x, low), center + x}
	} else {
		ends = a.span(name, [2]float64{center, center}, low, high)
	}
	if ends == [2]float64{center, center} {
		return nil
	}
	return &ends
}

// ends reads a range as one number, which is both its ends, or two; nil when it is left out.
func (a *arguments) ends(name string, low, high float64) *[2]float64 {
	raw, ok := a.raw[name]
	if !ok {
		a.take(name)
		return nil
	}
	if x := 0.0; !isNull(raw) && json.Unmarshal(raw, &x) == nil {
		a.take(name)
		x = a.number(name, raw, low, high)
		return &[2]float64{x, x}
	}
	span := a.span(name, [2]float64{low, high}, low, high)
	return &span
}
