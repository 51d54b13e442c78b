package transform

import (
	"encoding/json"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// randomChoice applies one of its ops. P are their weights; nil: all the same.
type randomChoice struct {
	container
	P []float64 `json:"p"`

	ends []float64 // sums of the weights up to each op
}

func newRandomChoice(a *arguments) op {
	o := &randomChoice{container: a.readTransforms()}
	n := len(o.Transforms.steps)
	if raw, ok := a.takeArgument("p"); ok && !isNull(raw) {
		o.P = readWeights(a, "p", raw, n)
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
		a.refuseArgument("p", "must not be all 0", nil)
	}
	return o
}

// readWeights reads n numbers.
func readWeights(a *arguments, name string, raw json.RawMessage, n int) []float64 {
	var list []json.RawMessage
	weights := make([]float64, n)
	if err := json.Unmarshal(raw, &list); err != nil || len(list) != n {
		a.refuseArgument(name, fmt.Sprintf("must be a list of %d numbers, one for each transform, got %s", n, shortenText(raw)), nil)
		return weights
	}
	for i, x := range list {
		weights[i] = a.parseNumber(name, x, 0, maxFactor)
	}
	return weights
}

func (o *randomChoice) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	first, all := o.Transforms.steps[0].outputSize(size, fixed)
	for _, s := range o.Transforms.steps[1:] {
		other, otherFixed := s.outputSize(size, fixed)
		first, all = agreeOnSize(first, other, all && otherFixed)
	}
	return first, all
}

func (o *randomChoice) drawParameters(d rng, p *program, rec *Draw) error {
	i := o.chooseOp(d.Block(0)[0])
	told, err := o.drawInner(d, []uint8{uint8(i)}, p, rec)
	if rec != nil {
		rec.Parameters = marshalCanonical(struct {
			Index      int               `json:"index"`
			Transforms []json.RawMessage `json:"transforms"`
		}{i, told})
	}
	return err
}

// chooseOp chooses an op by weight.
func (o *randomChoice) chooseOp(x uint32) int {
	last := len(o.ends) - 1
	at := float64(order.Unit(x)) * o.ends[last]
	i := 0
	for i < last && at >= o.ends[i] {
		i++
	}
	return i
}
