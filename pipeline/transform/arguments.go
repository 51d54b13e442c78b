package transform

import (
	"encoding/json"
	"fmt"
	"image"
	"maps"
	"math"
	"slices"
	"strings"
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

// take returns an argument; false when it is left out.
func (a *arguments) take(name string) (json.RawMessage, bool) {
	raw, ok := a.raw[name]
	a.known = append(a.known, name)
	delete(a.raw, name)
	return raw, ok
}

// refuse notes that an argument is wrong.
func (a *arguments) refuse(name, problem string, near any) {
	if a.err == nil {
		a.err = &PlanError{Step: a.step, Op: a.op, Argument: name, Problem: problem, Nearest: string(canonical(near))}
	}
}

// finish returns what was wrong; arguments that nobody took are.
func (a *arguments) finish() *PlanError {
	if a.err == nil && len(a.raw) > 0 {
		name := slices.Min(slices.Collect(maps.Keys(a.raw)))
		a.err = &PlanError{Step: a.step, Op: a.op, Argument: brief(name), Problem: "no such argument", Nearest: nearest(name, a.known)}
	}
	return a.err
}

// whole reads one whole number from 1 to MaxSide.
func (a *arguments) whole(name string, raw json.RawMessage) int {
	var x float64
	if err := json.Unmarshal(raw, &x); err != nil || isNull(raw) || x != math.Trunc(x) || x < 1 || x > MaxSide {
		a.refuse(name, fmt.Sprintf("must be a whole number from 1 to %d, got %s", MaxSide, brief(raw)), int(math.Round(min(max(x, 1), MaxSide))))
		return 1
	}
	return int(x)
}

// wholes reads a whole number or a list of one or two.
func (a *arguments) wholes(name string, raw json.RawMessage) []int {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || isNull(raw) {
		list = []json.RawMessage{raw}
	}
	if len(list) != 1 && len(list) != 2 {
		a.refuse(name, fmt.Sprintf("must be a number, or a list of one or two, got %s", brief(raw)), []int{224, 224})
		return []int{1}
	}
	sizes := make([]int, len(list))
	for i, x := range list {
		sizes[i] = a.whole(name, x)
	}
	return sizes
}

// size reads a size where one number means a square.
func (a *arguments) size(name string) size {
	raw, ok := a.take(name)
	if !ok {
		a.refuse(name, "is missing", 224)
		return size{1, 1}
	}
	s := a.wholes(name, raw)
	return size{s[0], s[len(s)-1]}
}

// number reads a number from low to high.
func (a *arguments) number(name string, raw json.RawMessage, low, high float64) float64 {
	var x float64
	if err := json.Unmarshal(raw, &x); err != nil || isNull(raw) || x < low || x > high {
		a.refuse(name, fmt.Sprintf("must be a number from %v to %v, got %s", low, high, brief(raw)), min(max(x, low), high))
		return low
	}
	return x + 0 // −0 becomes 0
}

// probability reads p, which is ½ when left out.
func (a *arguments) probability() float64 {
	raw, ok := a.take("p")
	if !ok {
		return 0.5
	}
	return a.number("p", raw, 0, 1)
}

// span reads two numbers from low to high in ascending order.
func (a *arguments) span(name string, standard [2]float64, low, high float64) [2]float64 {
	raw, ok := a.take(name)
	if !ok {
		return standard
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) != 2 {
		a.refuse(name, fmt.Sprintf("must be a list of two numbers, got %s", brief(raw)), standard)
		return standard
	}
	x := [2]float64{a.number(name, list[0], low, high), a.number(name, list[1], low, high)}
	if x[0] > x[1] {
		a.refuse(name, fmt.Sprintf("must ascend, got %s", brief(raw)), [2]float64{x[1], x[0]})
	}
	return x
}

// choice reads one of some names.
func (a *arguments) choice(name string, raw json.RawMessage, names []string) string {
	var s string
	switch err := json.Unmarshal(raw, &s); {
	case err != nil || isNull(raw):
		a.refuse(name, fmt.Sprintf("must be a name, got %s", brief(raw)), names[0])
	case !slices.Contains(names, s):
		a.refuse(name, fmt.Sprintf("no such name, got %s", brief(raw)), nearest(s, names))
	default:
		return s
	}
	return names[0]
}

// size is height and width, as torchvision writes sizes.
type size [2]int

func (s size) point() image.Point { return image.Pt(s[1], s[0]) }

// within reads a whole number from low to high.
func (a *arguments) within(name string, standard, low, high int) int {
	raw, ok := a.take(name)
	if !ok && standard <= high {
		return standard
	}
	if !ok {
		raw = canonical(standard)
	}
	var x int
	if err := json.Unmarshal(raw, &x); err != nil || isNull(raw) || x < low || x > high {
		a.refuse(name, fmt.Sprintf("must be a whole number from %d to %d, got %s", low, high, brief(raw)), min(max(x, low), high))
	}
	return x
}

// needed reads one whole number that must be there.
func (a *arguments) needed(name string, near int) int {
	raw, ok := a.take(name)
	if !ok {
		a.refuse(name, "is missing", near)
		return 1
	}
	return a.whole(name, raw)
}

// list reads one whole number or several.
func (a *arguments) list(name string, near int) []int {
	const most = 1000
	raw, ok := a.take(name)
	if !ok {
		a.refuse(name, "is missing", near)
		return []int{1}
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || isNull(raw) {
		list = []json.RawMessage{raw}
	}
	if len(list) == 0 || len(list) > most {
		a.refuse(name, fmt.Sprintf("must have 1 to %d numbers, got %d", most, len(list)), near)
		return []int{1}
	}
	numbers := make([]int, len(list))
	for i, x := range list {
		numbers[i] = a.whole(name, x)
	}
	return numbers
}

// count reads one whole number from low to high.
func (a *arguments) count(name string, raw json.RawMessage, low, high int) int {
	var x float64
	if err := json.Unmarshal(raw, &x); err != nil || isNull(raw) || x != math.Trunc(x) || x < float64(low) || x > float64(high) {
		near := int(math.Round(min(max(x, float64(low)), float64(high))))
		a.refuse(name, fmt.Sprintf("must be a whole number from %d to %d, got %s", low, high, brief(raw)), near)
		return low
	}
	return int(x)
}

// flag reads an argument that is false when left out.
func (a *arguments) flag(name string) bool {
	raw, ok := a.take(name)
	var yes bool
	if err := json.Unmarshal(raw, &yes); ok && (err != nil || isNull(raw)) {
		a.refuse(name, fmt.Sprintf("must be true or false, got %s", brief(raw)), false)
	}
	return yes
}

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

// canonical marshals numbers, strings and lists of them, which cannot fail.
func canonical(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// brief is text from outside, fit for an error message.
func brief[T ~string | ~[]byte](text T) string {
	s := string(text)
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
