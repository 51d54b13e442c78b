package augment

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

type randomRotation struct {
	Degrees       [2]float64  `json:"degrees"`
	Interpolation string      `json:"interpolation"`
	Expand        bool        `json:"expand"`
	Center        *[2]float64 `json:"center"`
	Fill          *[3]float64 `json:"fill"`
}

func newRandomRotation(a *arguments) op {
	return &randomRotation{
		Degrees:       a.angles("degrees"),
		Interpolation: a.warping("nearest"),
		Expand:        a.yes("expand", false),
		Center:        a.center(),
		Fill:          a.paint(&[3]float64{}),
	}
}

func (o *randomRotation) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed && !o.Expand
}

func (o *randomRotation) draw(d dice, p *program, rec *Draw) error {
	angle := uniform(d.block(0)[0], o.Degrees)
	if rec != nil {
		rec.Parameters = canonical(struct {
			Angle float64 `json:"angle"`
		}{angle})
	}
	return p.rotate(angle, brush{o.Interpolation, o.Fill}, o.Expand, o.Center)
}

// uniform is a number of a range, in float32, as torch draws.
func uniform(x uint32, span [2]float64) float64 {
	return float64(order.Uniform(x, float32(span[0]), float32(span[1])))
}
