package transform

import (
	"image"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/raster"
)

type randomAffine struct {
	Degrees       [2]float64  `json:"degrees"`
	Translate     *[2]float64 `json:"translate"`
	Scale         *[2]float64 `json:"scale"`
	Shear         []float64   `json:"shear"` // of x, or of x and y: ranges
	Interpolation string      `json:"interpolation"`
	Fill          *[3]float64 `json:"fill"`
	Center        *[2]float64 `json:"center"`
	policyDialect
}

func newRandomAffine(a *arguments) op {
	o := &randomAffine{Degrees: a.readAngles("degrees")}
	if x := a.readNumbers("translate", 0, 1, 2); x != nil {
		o.Translate = (*[2]float64)(x)
	}
	if x := a.readNumbers("scale", 1e-6, 1e6, 2); x != nil {
		o.Scale = (*[2]float64)(x)
	}
	o.Shear = a.readNumbers("shear", -widest, widest, 2, 4)
	o.Interpolation = a.readWarpFilter("nearest")
	o.Fill = a.readPaint(&[3]float64{})
	o.Center = a.readCenter()
	o.policyDialect = readPolicyDialect(a, o.Interpolation)
	return o
}

func (o *randomAffine) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

func (o *randomAffine) drawParameters(d rng, p *program, rec *Draw) error {
	x := o.drawAffinity(d, p.currentSize())
	if rec != nil {
		rec.Parameters = marshalCanonical(struct {
			Angle     float64    `json:"angle"`
			Translate [2]int     `json:"translate"`
			Scale     float64    `json:"scale"`
			Shear     [2]float64 `json:"shear"`
		}{x.Angle, x.Translate, x.Scale, x.Shear})
	}
	return p.addAffine(x, o.warpSampling(o.Interpolation, o.Fill), o.Center)
}

// drawAffinity is torchvision's make_params. Block 0 draws angle, both translations and scale, block 1 the shears.
func (o *randomAffine) drawAffinity(d rng, size image.Point) raster.Affinity {
	x := d.Block(0)
	a := raster.Affinity{Angle: drawUniform(x[0], o.Degrees), Scale: 1}
	if o.Translate != nil {
		for i, side := range [2]int{size.X, size.Y} {
			most := float64(o.Translate[i] * float64(side))
			a.Translate[i] = int(math.RoundToEven(drawUniform(x[1+i], [2]float64{-most, most})))
		}
	}
	if o.Scale != nil {
		a.Scale = drawUniform(x[3], *o.Scale)
	}
	if o.Shear != nil {
		x = d.Block(1)
		for i := range len(o.Shear) / 2 {
			a.Shear[i] = drawUniform(x[i], [2]float64{o.Shear[2*i], o.Shear[2*i+1]})
		}
	}
	return a
}
