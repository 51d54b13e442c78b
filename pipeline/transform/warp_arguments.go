package transform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/spelling"
)

// widest is the limit of angles in degrees and of positions in pixels, far beyond any real plan.
const widest = 1e6

// readWarpFilter reads the filter of a warp: PIL images know three.
func (a *arguments) readWarpFilter(standard string) string {
	raw, ok := a.takeArgument("interpolation")
	if !ok {
		return standard
	}
	offered := []string{"nearest", "bilinear", "bicubic"}
	var name string
	if err := json.Unmarshal(raw, &name); err != nil || isNull(raw) {
		a.refuseArgument("interpolation", fmt.Sprintf("must be a name, got %s", shortenText(raw)), standard)
	} else if !slices.Contains(offered, name) {
		a.refuseArgument("interpolation", fmt.Sprintf("no such filter for warps, got %s", shortenText(raw)), spelling.NearestClass(name, offered))
	}
	return name
}

// readNumbers reads a list of as many numbers from low to high as lengths allow; nil where it is left out or null.
func (a *arguments) readNumbers(name string, low, high float64, lengths ...int) []float64 {
	raw, ok := a.takeArgument(name)
	if !ok || isNull(raw) {
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || !slices.Contains(lengths, len(list)) {
		counts := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(lengths), "[]")), " or ")
		a.refuseArgument(name, fmt.Sprintf("must be a list of %s numbers, got %s", counts, shortenText(raw)), make([]float64, lengths[0]))
		return nil
	}
	x := make([]float64, len(list))
	for i := range list {
		x[i] = a.parseNumber(name, list[i], low, high)
	}
	return x
}

// readPaint reads a colour: a number for all channels or one for each; nil is null.
func (a *arguments) readPaint(standard *[3]float64) *[3]float64 {
	raw, ok := a.takeArgument("fill")
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
		a.refuseArgument("fill", fmt.Sprintf("must be a number, or a list of three, got %s", shortenText(raw)), [3]int{})
		return nil
	}
	c := &[3]float64{}
	for i := range c {
		c[i] = a.parseNumber("fill", list[min(i, len(list)-1)], 0, 255)
	}
	return c
}

// readCenter reads a point, x before y; nil is the middle.
func (a *arguments) readCenter() *[2]float64 {
	if x := a.readNumbers("center", -widest, widest, 2); x != nil {
		return (*[2]float64)(x)
	}
	return nil
}

// readAngles reads a range of degrees; one number means from −x to x.
func (a *arguments) readAngles(name string) [2]float64 {
	raw, ok := a.takeArgument(name)
	if !ok {
		a.refuseArgument(name, "is missing", [2]int{-30, 30})
		return [2]float64{}
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || isNull(raw) {
		x := a.parseNumber(name, raw, 0, widest)
		return [2]float64{-x + 0, x}
	}
	if len(list) != 2 {
		a.refuseArgument(name, fmt.Sprintf("must be a number, or a list of two, got %s", shortenText(raw)), [2]int{-30, 30})
		return [2]float64{}
	}
	return [2]float64{a.parseNumber(name, list[0], -widest, widest), a.parseNumber(name, list[1], -widest, widest)}
}

// readBool reads true or false.
func (a *arguments) readBool(name string, standard bool) bool {
	raw, ok := a.takeArgument(name)
	if !ok {
		return standard
	}
	var x bool
	if err := json.Unmarshal(raw, &x); err != nil || isNull(raw) {
		a.refuseArgument(name, fmt.Sprintf("must be true or false, got %s", shortenText(raw)), standard)
	}
	return x
}
