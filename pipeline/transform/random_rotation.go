package transform

import "image"

type randomRotation struct {
	Degrees       [2]float64  `json:"degrees"`
	Interpolation string      `json:"interpolation"`
	Expand        bool        `json:"expand"`
	Center        *[2]float64 `json:"center"`
	Fill          *[3]float64 `json:"fill"`
	policyDialect
}

func newRandomRotation(a *arguments) op {
	o := &randomRotation{
		Degrees:       a.angles("degrees"),
		Interpolation: a.warping("nearest"),
		Expand:        a.yes("expand", false),
		Center:        a.center(),
		Fill:          a.paint(&[3]float64{}),
	}
	o.policyDialect = a.policyDialect(o.Interpolation)
	return o
}

func (o *randomRotation) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed && !o.Expand
}

func (o *randomRotation) draw(d rng, p *program, rec *Draw) error {
	angle := uniform(d.Block(0)[0], o.Degrees)
	if rec != nil {
		rec.Parameters = canonical(struct {
			Angle float64 `json:"angle"`
		}{angle})
	}
	return p.rotate(angle, o.sampling(o.Interpolation, o.Fill), o.Expand, o.Center)
}
