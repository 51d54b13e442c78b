package transform

import (
	"encoding/json"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// randomChoice applies one of its ops. P are their weights; nil: all the same.
type randomChoice struct {
	within
	P []float64 `json:"p"`

	ends []float64 // sums of the weights up to each op
}

func newRandomChoice(a *arguments) op {
	o := &randomChoice{within: a.transforms()}
	n := len(o.Transforms.steps)
	if raw, ok := a.take("p"); ok && !isNull(raw) {
		o.P = a.weights("p", raw, n)
	}
	sum := 0.0
	for i := range n {
		weight := 1.0
		if o.P != nil {
			weight = o.P[i]
		}
		sum += weight
		o.ends = append(o.ends, sum)
	}
	if n > 0 && sum == 0 {
		a.refuse("p", "must not be all 0", nil)
	}
	return o
}

// weights reads n numbers.
func (a *arguments) weights(name string, raw json.RawMessage, n int) []float64 {
	var list []json.RawMessage
	weights := make([]float64, n)
	if err := json.Unmarshal(raw, &list); err != nil || len(list) != n {
		a.refuse(name, fmt.Sprintf("must be a list of %d numbers, one for each transform, got %s", n, brief(raw)), nil)
		return weights
	}
	for i, x := range list {
		weights[i] = a.number(name, x, 0, maxFactor)
	}
	return weights
}

func (o *randomChoice) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	first, all := o.Transforms.steps[0].resultOf(size, fixed)
	for _, s := range o.Transforms.steps[1:] {
		other, otherFixed := s.resultOf(size, fixed)
		first, all = agree(first, other, all && otherFixed)
	}
	return first, all
}

func (o *randomChoice) draw(d rng, p *program, rec *Draw) error {
	i := o.pick(d.Block(0)[0])
	told, err := o.run(d, []uint8{uint8(i)}, p, rec)
	if rec != nil {
		rec.Parameters = canonical(struct {
			Index      int               `json:"index"`
			Transforms []json.RawMessage `json:"transforms"`
		}{i, told})
	}
	return err
}

// pick chooses an op by weight.
func (o *randomChoice) pick(x uint32) int {
	last := len(o.ends) - 1
	at := float64(order.Unit(x)) * o.ends[last]
	i := 0
	for i < last && at >= o.ends[i] {
		i++
	}
	return i
}
