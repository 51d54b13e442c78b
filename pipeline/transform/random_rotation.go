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
		Degrees:       a.readAngles("degrees"),
		Interpolation: a.readWarpFilter("nearest"),
		Expand:        a.readBool("expand", false),
		Center:        a.readCenter(),
		Fill:          a.readPaint(&[3]float64{}),
	}
	o.policyDialect = readPolicyDialect(a, o.Interpolation)
	return o
}

func (o *randomRotation) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed && !o.Expand
}

func (o *randomRotation) drawParameters(d rng, p *program, rec *Draw) error {
	angle := drawUniform(d.Block(0)[0], o.Degrees)
	if rec != nil {
		rec.Parameters = marshalCanonical(struct {
			Angle float64 `json:"angle"`
		}{angle})
	}
	return p.addRotation(angle, o.warpSampling(o.Interpolation, o.Fill), o.Expand, o.Center)
}
