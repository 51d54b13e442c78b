package transform

import (
	"encoding/json"
	"fmt"
	"image"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/spelling"
)

// MaxSide is the longest side of any picture, in pixels.
const MaxSide = 65500

// arguments reads an op's arguments by name. The first thing that is wrong is kept, and reading goes on.
type arguments struct {
	step  int
	op    string
	raw   map[string]json.RawMessage
	known []string
	err   *PlanError
	depth int // how many ops this one is inside of
	parse func(transforms []json.RawMessage, depth int) (Chain, *PlanError)
}

// takeArgument returns an argument; false when it is left out.
func (a *arguments) takeArgument(name string) (json.RawMessage, bool) {
	raw, ok := a.raw[name]
	a.known = append(a.known, name)
	delete(a.raw, name)
	return raw, ok
}

// refuseArgument notes that an argument is wrong.
func (a *arguments) refuseArgument(name, problem string, near any) {
	if a.err == nil {
		a.err = &PlanError{Step: a.step, Op: a.op, Argument: name, Problem: problem, Nearest: string(marshalCanonical(near))}
	}
}

// firstError returns what was wrong; arguments that nobody took are.
func (a *arguments) firstError() *PlanError {
	if a.err == nil && len(a.raw) > 0 {
		name := slices.Min(slices.Collect(maps.Keys(a.raw)))
		a.err = &PlanError{Step: a.step, Op: a.op, Argument: shortenText(name), Problem: "no such argument", Nearest: spelling.NearestClass(name, a.known)}
	}
	return a.err
}

// parseWhole reads one whole number from 1 to MaxSide.
func (a *arguments) parseWhole(name string, raw json.RawMessage) int {
	var x float64
	if err := json.Unmarshal(raw, &x); err != nil || isNull(raw) || x != math.Trunc(x) || x < 1 || x > MaxSide {
		a.refuseArgument(name, fmt.Sprintf("must be a whole number from 1 to %d, got %s", MaxSide, shortenText(raw)), int(math.Round(min(max(x, 1), MaxSide))))
		return 1
	}
	return int(x)
}

// parseWholes reads a whole number or a list of one or two.
func (a *arguments) parseWholes(name string, raw json.RawMessage) []int {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || isNull(raw) {
		list = []json.RawMessage{raw}
	}
	if len(list) != 1 && len(list) != 2 {
		a.refuseArgument(name, fmt.Sprintf("must be a number, or a list of one or two, got %s", shortenText(raw)), []int{224, 224})
		return []int{1}
	}
	sizes := make([]int, len(list))
	for i, x := range list {
		sizes[i] = a.parseWhole(name, x)
	}
	return sizes
}

// readSize reads a size where one number means a square.
func (a *arguments) readSize(name string) size {
	raw, ok := a.takeArgument(name)
	if !ok {
		a.refuseArgument(name, "is missing", 224)
		return size{1, 1}
	}
	s := a.parseWholes(name, raw)
	return size{s[0], s[len(s)-1]}
}

// parseNumber reads a number from low to high.
func (a *arguments) parseNumber(name string, raw json.RawMessage, low, high float64) float64 {
	var x float64
	if err := json.Unmarshal(raw, &x); err != nil || isNull(raw) || x < low || x > high {
		a.refuseArgument(name, fmt.Sprintf("must be a number from %v to %v, got %s", low, high, shortenText(raw)), min(max(x, low), high))
		return low
	}
	return x + 0 // −0 becomes 0
}

// readProbability reads p, which is ½ when left out.
func (a *arguments) readProbability() float64 {
	raw, ok := a.takeArgument("p")
	if !ok {
		return 0.5
	}
	return a.parseNumber("p", raw, 0, 1)
}

// readSpan reads two numbers from low to high in ascending order.
func (a *arguments) readSpan(name string, standard [2]float64, low, high float64) [2]float64 {
	raw, ok := a.takeArgument(name)
	if !ok {
		return standard
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) != 2 {
		a.refuseArgument(name, fmt.Sprintf("must be a list of two numbers, got %s", shortenText(raw)), standard)
		return standard
	}
	x := [2]float64{a.parseNumber(name, list[0], low, high), a.parseNumber(name, list[1], low, high)}
	if x[0] > x[1] {
		a.refuseArgument(name, fmt.Sprintf("must ascend, got %s", shortenText(raw)), [2]float64{x[1], x[0]})
	}
	return x
}

// readChoice reads one of some names.
func (a *arguments) readChoice(name string, raw json.RawMessage, names []string) string {
	var s string
	switch err := json.Unmarshal(raw, &s); {
	case err != nil || isNull(raw):
		a.refuseArgument(name, fmt.Sprintf("must be a name, got %s", shortenText(raw)), names[0])
	case !slices.Contains(names, s):
		a.refuseArgument(name, fmt.Sprintf("no such name, got %s", shortenText(raw)), spelling.NearestClass(s, names))
	default:
		return s
	}
	return names[0]
}

// size is height and width, as torchvision writes sizes.
type size [2]int

func (s size) asPoint() image.Point { return image.Pt(s[1], s[0]) }

// readWithin reads a whole number from low to high.
func (a *arguments) readWithin(name string, standard, low, high int) int {
	raw, ok := a.takeArgument(name)
	if !ok && standard <= high {
		return standard
	}
	if !ok {
		raw = marshalCanonical(standard)
	}
	var x int
	if err := json.Unmarshal(raw, &x); err != nil || isNull(raw) || x < low || x > high {
		a.refuseArgument(name, fmt.Sprintf("must be a whole number from %d to %d, got %s", low, high, shortenText(raw)), min(max(x, low), high))
	}
	return x
}

// readRequiredWhole reads one whole number that must be there.
func (a *arguments) readRequiredWhole(name string, near int) int {
	raw, ok := a.takeArgument(name)
	if !ok {
		a.refuseArgument(name, "is missing", near)
		return 1
	}
	return a.parseWhole(name, raw)
}

// readWholes reads one whole number or several.
func (a *arguments) readWholes(name string, near int) []int {
	const most = 1000
	raw, ok := a.takeArgument(name)
	if !ok {
		a.refuseArgument(name, "is missing", near)
		return []int{1}
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || isNull(raw) {
		list = []json.RawMessage{raw}
	}
	if len(list) == 0 || len(list) > most {
		a.refuseArgument(name, fmt.Sprintf("must have 1 to %d numbers, got %d", most, len(list)), near)
		return []int{1}
	}
	numbers := make([]int, len(list))
	for i, x := range list {
		numbers[i] = a.parseWhole(name, x)
	}
	return numbers
}

// readCount reads one whole number from low to high.
func (a *arguments) readCount(name string, raw json.RawMessage, low, high int) int {
	var x float64
	if err := json.Unmarshal(raw, &x); err != nil || isNull(raw) || x != math.Trunc(x) || x < float64(low) || x > float64(high) {
		near := int(math.Round(min(max(x, float64(low)), float64(high))))
		a.refuseArgument(name, fmt.Sprintf("must be a whole number from %d to %d, got %s", low, high, shortenText(raw)), near)
		return low
	}
	return int(x)
}

// maxFactor is far beyond any real factor and any real weight.
const maxFactor = 1e6

// readRequired reads a number that has no default.
func (a *arguments) readRequired(name string, example, low, high float64) float64 {
	raw, ok := a.takeArgument(name)
	if !ok {
		a.refuseArgument(name, "is missing", example)
		return example
	}
	return a.parseNumber(name, raw, low, high)
}

// readBits reads how many bits remain, 1 to 8: Pillow knows no 0.
func readBits(a *arguments) int {
	x := a.readRequired("bits", 4, 1, 8)
	if x != math.Trunc(x) {
		a.refuseArgument("bits", fmt.Sprintf("must be a whole number from 1 to 8, got %v", x), math.Round(x))
	}
	return int(x)
}

// readFactorRange reads the range of a factor: null, how far it may be from center, or its ends. A range of nothing but
// center is none.
func (a *arguments) readFactorRange(name string, center, low, high float64) *[2]float64 {
	raw, ok := a.raw[name]
	if !ok || isNull(raw) {
		a.takeArgument(name)
		return nil
	}
	var ends [2]float64
	if x := 0.0; json.Unmarshal(raw, &x) == nil {
		a.takeArgument(name)
		x = a.parseNumber(name, raw, 0, high-center)
		ends = [2]float64{max(center-x, low), center + x}
	} else {
		ends = a.readSpan(name, [2]float64{center, center}, low, high)
	}
	if ends == [2]float64{center, center} {
		return nil
	}
	return &ends
}

// readEnds reads a range as one number, which is both its ends, or two; nil when it is left out.
func (a *arguments) readEnds(name string, low, high float64) *[2]float64 {
	raw, ok := a.raw[name]
	if !ok {
		a.takeArgument(name)
		return nil
	}
	if x := 0.0; !isNull(raw) && json.Unmarshal(raw, &x) == nil {
		a.takeArgument(name)
		x = a.parseNumber(name, raw, low, high)
		return &[2]float64{x, x}
	}
	span := a.readSpan(name, [2]float64{low, high}, low, high)
	return &span
}

// marshalCanonical marshals numbers, strings and lists of them, which cannot fail.
func marshalCanonical(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// shortenText is text from outside, fit for an error message.
func shortenText[T ~string | ~[]byte](text T) string {
	s := string(text)
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
