package transform

import (
	"encoding/json"
	"fmt"
	"image"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// randomErasing chooses a rectangle. The pixels stay as they are: the value that erases is one of those that the last
// hop makes, most of which no byte can stand for, so that the rectangle travels with the batch and is erased there.
type randomErasing struct {
	P     float64    `json:"p"`
	Scale [2]float64 `json:"scale"`
	Ratio [2]float64 `json:"ratio"`
	Value any        `json:"value"` // numbers, or noise

	scale, logRatio [2]float32
}

func newRandomErasing(a *arguments) op {
	o := &randomErasing{
		P:     a.readProbability(),
		Scale: a.readSpan("scale", [2]float64{0.02, 0.33}, 0, 1),
		Ratio: a.readSpan("ratio", [2]float64{0.3, 3.3}, 1e-6, 1e6),
		Value: readErasingValue(a),
	}
	for i := range 2 {
		o.scale[i], o.logRatio[i] = float32(o.Scale[i]), logFloat32(o.Ratio[i])
	}
	return o
}

// normalNoise as a value fills rectangles with normal numbers.
const normalNoise = "random"

// readErasingValue reads one number, or one for each channel, or noise.
func readErasingValue(a *arguments) any {
	raw, ok := a.takeArgument("value")
	if !ok {
		return []float64{0}
	}
	if string(raw) == `"`+normalNoise+`"` {
		return normalNoise
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || isNull(raw) {
		list = []json.RawMessage{raw}
	}
	if len(list) != 1 && len(list) != 3 {
		a.refuseArgument("value", fmt.Sprintf(`must be a number, a list of three, or "random", got %s`, shortenText(raw)), 0)
		return []float64{0}
	}
	values := make([]float64, len(list))
	for i, x := range list {
		values[i] = a.parseNumber("value", x, -math.MaxFloat32, math.MaxFloat32)
	}
	return values
}

func (o *randomErasing) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

func (o *randomErasing) changePlace() string { return lastHop }

func (o *randomErasing) dialectName() string { return tensorDialect }

func (o *randomErasing) drawParameters(d rng, p *program, rec *Draw) error {
	if !drawApplied(d, o.P, rec) {
		p.boxes = append(p.boxes, Box{})
		return nil
	}
	size := p.currentSize()
	b, found := o.drawBox(d, size)
	p.boxes = append(p.boxes, b)
	if rec != nil {
		told := struct {
			I int `json:"i"`
			J int `json:"j"`
			H int `json:"h"`
			W int `json:"w"`
			V any `json:"v"`
		}{b[0], b[1], b[2], b[3], o.Value}
		if !found {
			told.H, told.W, told.V = size.Y, size.X, nil
		}
		rec.Parameters = marshalCanonical(told)
	}
	return nil
}

// drawBox is torchvision's make_params. Attempt k draws from block k+1: area, ratio, top, left. Block 11 has
// the words of noise.
func (o *randomErasing) drawBox(d rng, size image.Point) (b Box, found bool) {
	area := float64(size.X) * float64(size.Y)
	for k := range uint32(10) {
		x := d.Block(k + 1)
		target := area * float64(order.Uniform(x[0], o.scale[0], o.scale[1]))
		ratio := float64(float32(order.Exp(float64(order.Uniform(x[1], o.logRatio[0], o.logRatio[1])))))
		h := int(math.RoundToEven(math.Sqrt(target * ratio)))
		w := int(math.RoundToEven(math.Sqrt(target / ratio)))
		if h < size.Y && w < size.X {
			top, left := order.Below(x[2], uint32(size.Y-h+1)), order.Below(x[3], uint32(size.X-w+1))
			b = Box{int(top), int(left), h, w}
			if o.Value == normalNoise {
				x = d.Block(11)
				b[4], b[5] = int(x[0]|1), int(x[1])
			}
			return b, true
		}
	}
	return Box{}, false
}
