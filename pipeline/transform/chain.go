// Package transform turns decoded pixels into what a plan asks for. A Chain is a plan's list of transforms, named and
// behaving as those of torchvision.transforms.v2 do on PIL images, to the last bit. A Runner draws a sample's
// parameters, folds them into as few passes over the pixels as there can be, asks a Source for the region that is
// needed, and resizes its rows while they stream in. The package knows no codec and no batch, and starts no goroutine:
// every worker owns a Runner.
package transform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// An op is one transform with its arguments. Its JSON is its arguments in canonical form: all of them, in torchvision's
// order.
type op interface {
	// drawParameters makes the op's parameters from d and adds what they do to p. It tells them to rec, unless that is
	// nil.
	drawParameters(d rng, p *program, rec *Draw) error
	// outputSize returns the size of what the op makes of every picture of a size; false when it depends on the sample.
	// fixed tells whether the size that comes in is known.
	outputSize(size image.Point, fixed bool) (image.Point, bool)
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

// countOps is the number of all transforms, those inside others too.
func (c Chain) countOps() int {
	n := len(c.steps)
	for _, s := range c.steps {
		if o, ok := s.op.(interface{ innerChain() Chain }); ok {
			n += o.innerChain().countOps()
		}
	}
	return n
}

// OutputSize is the size of every result; fixed is false when it differs from sample to sample.
func (c Chain) OutputSize() (h, w int, fixed bool) {
	size, fixed := c.sizeAfter(image.Point{}, false)
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
		infos[i] = Info{Name: s.name, Place: placeOf(s.op), Dialect: dialectOf(s.op), Tier: tierOf(s.op), Arguments: marshalCanonical(s.op)}
	}
	return infos
}

// tierOf is A but for ops that say otherwise.
func tierOf(o op) string {
	if t, ok := o.(interface{ parityTier() string }); ok {
		return t.parityTier()
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
		arguments := marshalCanonical(s.op)
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

// dialectOf is for explain.
func dialectOf(o op) string {
	if d, ok := o.(interface{ dialectName() string }); ok && d.dialectName() != "" {
		return d.dialectName()
	}
	return pilDialect
}

// lastHop is where an op's pixels change when it is not on the node.
const lastHop = "last hop"

// placeOf is for explain.
func placeOf(o op) string {
	if p, ok := o.(interface{ changePlace() string }); ok {
		return p.changePlace()
	}
	return "node"
}

// Boxes is how many rectangles each sample comes with, for the last hop to erase.
func (c Chain) Boxes() (n int) {
	for _, s := range c.steps {
		if placeOf(s.op) == lastHop {
			n++
		}
	}
	return n
}

// makeKeys are those of all ops. An op inside another has its path behind the other's, as
// "RandomApply/0/ColorJitter/0".
func (c Chain) makeKeys(seed uint64, path string) []keyring {
	rings := make([]keyring, len(c.steps))
	for i, s := range c.steps {
		rings[i].Key = order.NewKey(seed, path+s.path)
		if o, ok := s.op.(interface{ innerChain() Chain }); ok {
			rings[i].inside = o.innerChain().makeKeys(seed, path+s.path+"/")
		}
	}
	return rings
}

// drawSample draws for all ops in order, and tells it to draws, unless that is nil. An error is an *OpError.
func (c Chain) drawSample(keys []keyring, sample order.Sample, p *program, draws []Draw) error {
	for i := range c.steps {
		var rec *Draw
		if draws != nil {
			rec = &draws[i]
		}
		if err := c.steps[i].drawStep(rng{raster.RNG{Key: keys[i].Key, Sample: sample}, keys[i].inside}, p, rec); err != nil {
			return err
		}
	}
	return nil
}

func (s *step) drawStep(d rng, p *program, rec *Draw) error {
	if rec != nil {
		*rec = Draw{Op: s.name, Applied: true, Parameters: []byte("{}")}
	}
	err := s.drawParameters(d, p, rec)
	if p.large != nil && p.large.Op == "" {
		p.large.Op = s.name
	}
	if err == nil || err == error(p.large) { //nolint:errorlint // the very one, which names another op
		return err
	}
	return &OpError{s.name, err}
}

// sizeAfter is the size of what the chain makes of pictures of a size.
func (c Chain) sizeAfter(size image.Point, fixed bool) (image.Point, bool) {
	for _, s := range c.steps {
		size, fixed = s.outputSize(size, fixed)
	}
	return size, fixed
}

// sameSize is part of ops that change no size.
type sameSize struct{}

func (sameSize) outputSize(size image.Point, fixed bool) (image.Point, bool) { return size, fixed }
