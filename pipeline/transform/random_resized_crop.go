package transform

import (
	"image"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

type randomResizedCrop struct {
	Size  size       `json:"size"`
	Scale [2]float64 `json:"scale"`
	Ratio [2]float64 `json:"ratio"`
	method

	scale, logRatio [2]float32
}

func newRandomResizedCrop(a *arguments) op {
	o := &randomResizedCrop{
		Size:   a.readSize("size"),
		Scale:  a.readSpan("scale", [2]float64{0.08, 1}, 0, 1000),
		Ratio:  a.readSpan("ratio", [2]float64{3.0 / 4, 4.0 / 3}, 1e-6, 1e6),
		method: a.readMethod(),
	}
	for i := range 2 {
		o.scale[i], o.logRatio[i] = float32(o.Scale[i]), logFloat32(o.Ratio[i])
	}
	return o
}

// logFloat32 is the logarithm of a float32, rounded to float32. torch.log is that too, or a unit off: it differs
// between processors.
func logFloat32(x float64) float32 { return float32(order.Log(float64(float32(x)))) }

func (o *randomResizedCrop) outputSize(image.Point, bool) (image.Point, bool) {
	return o.Size.asPoint(), true
}

func (o *randomResizedCrop) drawParameters(d rng, p *program, rec *Draw) error {
	crop := o.drawCrop(d, p.currentSize())
	if rec != nil {
		rec.Parameters = marshalCanonical(struct {
			Top    int `json:"top"`
			Left   int `json:"left"`
			Height int `json:"height"`
			Width  int `json:"width"`
		}{crop.Min.Y, crop.Min.X, crop.Dy(), crop.Dx()})
	}
	if err := p.addCrop(crop); err != nil {
		return err
	}
	return p.addResize(o.Size.asPoint(), o.resizeMethod())
}

// drawCrop is torchvision's make_params. Attempt k draws from block k: area, ratio, top, left.
func (o *randomResizedCrop) drawCrop(d rng, size image.Point) image.Rectangle {
	area := float64(size.X) * float64(size.Y)
	for k := range uint32(10) {
		x := d.Block(k)
		target := area * float64(order.Uniform(x[0], o.scale[0], o.scale[1]))
		ratio := float64(float32(order.Exp(float64(order.Uniform(x[1], o.logRatio[0], o.logRatio[1])))))
		w := int(math.RoundToEven(math.Sqrt(target * ratio)))
		h := int(math.RoundToEven(math.Sqrt(target / ratio)))
		if 0 < w && w <= size.X && 0 < h && h <= size.Y {
			top, left := order.Below(x[2], uint32(size.Y-h+1)), order.Below(x[3], uint32(size.X-w+1))
			return makeRectangle(int(left), int(top), w, h)
		}
	}
	return o.fallbackCrop(size)
}

// fallbackCrop is the middle of the picture, at the nearest ratio.
func (o *randomResizedCrop) fallbackCrop(size image.Point) image.Rectangle {
	w, h := size.X, size.Y
	switch ratio := float64(w) / float64(h); {
	case ratio < o.Ratio[0]:
		h = int(math.RoundToEven(float64(w) / o.Ratio[0]))
	case ratio > o.Ratio[1]:
		w = int(math.RoundToEven(float64(h) * o.Ratio[1]))
	}
	return makeRectangle((size.X-w)/2, (size.Y-h)/2, w, h)
}

func makeRectangle(left, top, w, h int) image.Rectangle { return image.Rect(left, top, left+w, top+h) }
