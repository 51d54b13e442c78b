package transform

import (
	"encoding/json"
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// jpegOp makes pictures what a JPEG file of some quality would keep of them.
type jpegOp struct {
	sameSize
	Quality [2]int `json:"quality"`
}

func newJPEG(a *arguments) op {
	o := &jpegOp{Quality: [2]int{50, 50}}
	raw, ok := a.takeArgument("quality")
	if !ok {
		a.refuseArgument("quality", "is missing", [2]int{50, 50})
		return o
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || isNull(raw) {
		list = []json.RawMessage{raw, raw}
	}
	if len(list) != 2 {
		a.refuseArgument("quality", fmt.Sprintf("must be a number, or a list of two, got %s", shortenText(raw)), [2]int{50, 100})
		return o
	}
	for i, x := range list {
		if o.Quality[i] = a.parseWhole("quality", x); o.Quality[i] > 100 {
			a.refuseArgument("quality", fmt.Sprintf("must be a whole number from 1 to 100, got %s", shortenText(x)), 100)
		}
	}
	if o.Quality[0] > o.Quality[1] {
		a.refuseArgument("quality", fmt.Sprintf("must ascend, got %s", shortenText(raw)), [2]int{o.Quality[1], o.Quality[0]})
	}
	return o
}

func (o *jpegOp) drawParameters(d rng, p *program, rec *Draw) error {
	quality := o.Quality[0] + int(order.Below(d.Block(0)[0], uint32(o.Quality[1]-o.Quality[0]+1)))
	if rec != nil {
		rec.Parameters = marshalCanonical(map[string]int{"quality": quality})
	}
	return p.addEffect(raster.CompressJPEG(quality), p.currentSize())
}
