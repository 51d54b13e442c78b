package augment

import (
	"encoding/json"
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// jpegOp makes pictures what a JPEG file of some quality would keep of them.
type jpegOp struct {
	sameSize
	Quality [2]int `json:"quality"`
}

func newJPEG(a *arguments) op {
	o := &jpegOp{Quality: [2]int{50, 50}}
	raw, ok := a.take("quality")
	if !ok {
		a.refuse("quality", "is missing", [2]int{50, 50})
		return o
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || isNull(raw) {
		list = []json.RawMessage{raw, raw}
	}
	if len(list) != 2 {
		a.refuse("quality", fmt.Sprintf("must be a number, or a list of two, got %s", brief(raw)), [2]int{50, 100})
		return o
	}
	for i, x := range list {
		if o.Quality[i] = a.whole("quality", x); o.Quality[i] > 100 {
			a.refuse("quality", fmt.Sprintf("must be a whole number from 1 to 100, got %s", brief(x)), 100)
		}
	}
	if o.Quality[0] > o.Quality[1] {
		a.refuse("quality", fmt.Sprintf("must ascend, got %s", brief(raw)), [2]int{o.Quality[1], o.Quality[0]})
	}
	return o
}

func (o *jpegOp) draw(d dice, p *program, rec *Draw) error {
	quality := o.Quality[0] + int(order.Below(d.block(0)[0], uint32(o.Quality[1]-o.Quality[0]+1)))
	if rec != nil {
		rec.Parameters = canonical(map[string]int{"quality": quality})
	}
	return p.apply(compress(quality), p.size())
}

// compress is to a JPEG file and back as libjpeg-turbo does both when nothing but the quality, 1 to 100, is set: chroma of half the size,
// accurate integer transforms, smooth upsampling. Entropy coding loses nothing and is left out.
func compress(quality int) effect {
	return effect{across: recompress, numbers: [16]float64{float64(quality)}}
}

func recompress(e *effect, w *workspace, dst, src *pixel.Image) {
	c := &w.jpeg
	c.begin(w.level, src.W, src.H)
	c.split(src)
	c.steps = [3][64]uint16{quantization(&lumaSteps, int(e.numbers[0])), quantization(&chromaSteps, int(e.numbers[0]))}
	c.steps[2] = c.steps[1]
	for i := range c.planes {
		c.planes[i].quantize(c, &c.steps[i])
	}
	c.join(dst)
}

// The quantization steps of ITU-T T.81, annex K.1, row by row, for quality 50.
var (
	lumaSteps = [64]uint8{
		16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62,
		18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
	}
	chromaSteps = [64]uint8{
		17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
		99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
	}
)

// quantization scales steps by quality, as libjpeg does.
func quantization(steps *[64]uint8, quality int) (q [64]uint16) {
	percent := 200 - 2*quality
	if quality < 50 {
		percent = 5000 / quality
	}
	for i, s := range steps {
		q[i] = uint16(min(max((int(s)*percent+50)/100, 1), 255))
	}
	return q
}
