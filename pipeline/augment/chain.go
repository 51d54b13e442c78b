// Package augment turns decoded pixels into what a plan asks for. A Chain is a plan's list of transforms, named and behaving as
// those of torchvision.transforms.v2 do on PIL images, to the last bit. A Runner draws a sample's parameters, folds them
// into as few passes over the pixels as there can be, asks a Source for the region that is needed, and resizes its rows while they
// stream in. The package knows no codec and no batch, and starts no goroutine: every worker owns a Runner.
package augment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// An op is one transform with its arguments. Its JSON is its arguments in canonical form: all of them, in torchvision's order.
type op interface {
	// draw makes the op's parameters from d and adds what they do to p. It tells them to rec, unless that is nil.
	draw(d dice, p *program, rec *Draw) error
	// resultOf returns the size of what the op makes of every picture of a size; false when it depends on the sample.
	// fixed tells whether the size that comes in is known.
	resultOf(size image.Point, fixed bool) (image.Point, bool)
}

// dice are the random words of one op for one sample.
type dice struct {
	key    order.Key
	sample order.Sample
	inside []keyring // of the ops inside it
}

func (d dice) block(i uint32) [4]uint32 { return d.key.Block(d.sample, i) }

// Draw tells what an op drew for a sample.
type Draw struct {
	// Op is the op's class.
	Op string `json:"op"`
	// Applied is false where a random op left the picture as it was.
	Applied bool `json:"applied"`
	// Parameters is a JSON object with the names that the class's make_params uses.
	Parameters json.RawMessage `json:"parameters"`
}

// A step is an op and its place in the chain.
type step struct {
	op
	name string
	path string // name and occurrence, what its draws are keyed by
	// maskFill is what masks are filled with, if it is not what pictures are.
	maskFill *byte
}

// Chain is a list of transforms. It is a value that does not change; the empty Chain leaves pictures as they are.
type Chain struct{ steps []step }

// maxSteps in one list, and maxOps in all of a plan, are far beyond any real plan.
const (
	maxSteps = 100
	maxOps   = 500
)

// Parse reads a plan's transforms, as {"op": "RandomResizedCrop", "size": 224}. Arguments that are left out take torchvision's
// defaults. An error is a *PlanError.
func Parse(transforms []json.RawMessage) (Chain, error) {
	if len(transforms) > maxSteps {
		return Chain{}, &PlanError{Step: maxSteps, Problem: fmt.Sprintf("a plan has at most %d transforms", maxSteps)}
	}
	c, err := parseSteps(transforms, 0)
	if err != nil {
		return Chain{}, err
	}
	if n := c.ops(); n > maxOps {
		return Chain{}, &PlanError{Problem: fmt.Sprintf("a plan has at most %d transforms, those inside others counted; these are %d", maxOps, n)}
	}
	return c, nil
}

// ops is the number of all transforms, those inside others too.
func (c Chain) ops() int {
	n := len(c.steps)
	for _, s := range c.steps {
		if o, ok := s.op.(interface{ inside() Chain }); ok {
			n += o.inside().ops()
		}
	}
	return n
}

// parseSteps parses the transforms of a plan, or those inside an op, depth ops deep. Sizes are known only in a plan.
func parseSteps(transforms []json.RawMessage, depth int) (Chain, *PlanError) {
	var c Chain
	seen := map[string]int{}
	for i, raw := range transforms {
		s, err := parseOp(i, raw, depth)
		if err != nil {
			return Chain{}, err
		}
		s.path = fmt.Sprintf("%s/%d", s.name, seen[s.name])
		seen[s.name]++
		c.steps = append(c.steps, s)
		if h, w, fixed := c.OutputSize(); depth == 0 && fixed && (min(h, w) < 1 || max(h, w) > MaxSide) {
			problem := fmt.Sprintf("makes pictures of %d×%d pixels here; a side has 1 to %d", w, h, MaxSide)
			return Chain{}, &PlanError{Step: i, Op: s.name, Problem: problem}
		}
	}
	if err := c.checkLast(); err != nil {
		return Chain{}, err
	}
	return c, nil
}

// OutputSize is the size of every result; fixed is false when it differs from sample to sample.
func (c Chain) OutputSize() (h, w int, fixed bool) {
	size, fixed := c.then(image.Point{}, false)
	if !fixed {
		return 0, 0, false
	}
	return size.Y, size.X, true
}

// Info describes an op for explain.
type Info struct {
	// Name is the op's class in torchvision.transforms.v2.
	Name string
	// Place is where it changes pixels: "node" or "last hop".
	Place string
	// Dialect says whose arithmetic the op repeats: "pil" or "tensor".
	Dialect string
	// Tier is "A": all values equal, "B": within one level, or "C": the same distribution.
	Tier string
	// Arguments is a JSON object.
	Arguments json.RawMessage
}

// Infos describes the ops in order.
func (c Chain) Infos() []Info {
	infos := make([]Info, len(c.steps))
	for i, s := range c.steps {
		infos[i] = Info{Name: s.name, Place: placeOf(s.op), Dialect: dialectOf(s.op), Tier: tierOf(s.op), Arguments: canonical(s.op)}
	}
	return infos
}

// tierOf is A but for ops that say otherwise.
func tierOf(o op) string {
	if t, ok := o.(interface{ tier() string }); ok {
		return t.tier()
	}
	return "A"
}

// MarshalJSON writes the canonical form: defaults filled in, members in a fixed order. Equal chains have equal bytes.
func (c Chain) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, s := range c.steps {
		if i > 0 {
			b.WriteByte(',')
		}
		arguments := canonical(s.op)
		fmt.Fprintf(&b, `{"op":%q`, s.name)
		if len(arguments) > len("{}") {
			b.WriteByte(',')
		}
		b.Write(arguments[1 : len(arguments)-1])
		if s.maskFill != nil {
			fmt.Fprintf(&b, `,"mask_fill":%d`, *s.maskFill)
		}
		b.WriteByte('}')
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}

// canonical marshals numbers, strings and lists of them, which cannot fail.
func canonical(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
