package transform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// widest is the limit of angles in degrees and of positions in pixels, far beyond any real plan.
const widest = 1e6

// warping reads the filter of a warp: PIL images know three.
func (a *arguments) warping(standard string) string {
	raw, ok := a.take("interpolation")
	if !ok {
		return standard
	}
	offered := []string{"nearest", "bilinear", "bicubic"}
	var name string
	if err := json.Unmarshal(raw, &name); err != nil || isNull(raw) {
		a.refuse("interpolation", fmt.Sprintf("must be a name, got %s", brief(raw)), standard)
	} else if !slices.Contains(offered, name) {
		a.refuse("interpolation", fmt.Sprintf("no such filter for warps, got %s", brief(raw)), nearest(name, offered))
	}
	return name
}

// numbers reads a list of as many numbers from low to high as lengths allow; nil where it is left out or null.
func (a *arguments) numbers(name string, low, high float64, lengths ...int) []float64 {
	raw, ok := a.take(name)
	if !ok || isNull(raw) {
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || !slices.Contains(lengths, len(list)) {
		counts := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(lengths), "[]")), " or ")
		a.refuse(name, fmt.Sprintf("must be a list of %s numbers, got %s", counts, brief(raw)), make([]float64, lengths[0]))
		return nil
	}
	x := make([]float64, len(list))
	for i := range list {
		x[i] = a.number(name, list[i], low, high)
	}
	return x
}

// paint reads a colour: a number for all channels or one for each; nil is null.
func (a *arguments) paint(standard *[3]float64) *[3]float64 {
	raw, ok := a.take("fill")
	if !ok {
		return standard
	}
	if isNull(raw) {
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		list = []json.RawMessage{raw}
	}
	if len(list) != 1 && len(list) != 3 {
		a.refuse("fill", fmt.Sprintf("must be a number, or a list of three, got %s", brief(raw)), [3]int{})
		return nil
	}
	c := &[3]float64{}
	for i := range c {
		c[i] = a.number("fill", list[min(i, len(list)-1)], 0, 255)
	}
	return c
}

// center reads a point, x before y; nil is the middle.
func (a *arguments) center() *[2]float64 {
	if x := a.numbers("center", -widest, widest, 2); x != nil {
		return (*[2]float64)(x)
	}
	return nil
}

// angles reads a range of degrees; one number means from −x to x.
func (a *arguments) angles(name string) [2]float64 {
	raw, ok := a.take(name)
	if !ok {
		a.refuse(name, "is missing", [2]int{-30, 30})
		return [2]float64{}
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || isNull(raw) {
		x := a.number(name, raw, 0, widest)
		return [2]float64{-x + 0, x}
	}
	if len(list) != 2 {
		a.refuse(name, fmt.Sprintf("must be a number, or a list of two, got %s", brief(raw)), [2]int{-30, 30})
		return [2]float64{}
	}
	return [2]float64{a.number(name, list[0], -widest, widest), a.number(name, list[1], -widest, widest)}
}

// yes reads true or false, false when left out.
func (a *arguments) yes(name string, standard bool) bool {
	raw, ok := a.take(name)
	if !ok {
		return standard
	}
	var x bool
	if err := json.Unmarshal(raw, &x); err != nil || isNull(raw) {
		a.refuse(name, fmt.Sprintf("must be true or false, got %s", brief(raw)), standard)
	}
	return x
}
