package pipeline

import (
	"encoding/json"
	"fmt"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// drawsField is the array of what was drawn for each sample, for trainers that move boxes as the pictures were moved: a
// row of bytes as those of values, which holds a drawnSample in JSON.
const drawsField = imageField + ".draws"

// A drawnSample is what was drawn for a picture.
type drawnSample struct {
	// Size is that of the file's picture: height and width.
	Size [2]int `json:"size"`
	// Draws has an object for each op, as replays have them.
	Draws []json.RawMessage `json:"draws"`
}

// drawHead and drawBytes bound the JSON of a sample, in bytes: what is around the draws, and that of one op.
const (
	drawHead  = 64
	drawBytes = 512
)

// checkDraws looks at what a plan says of draws.
func (p *Plan) checkDraws() error {
	if !p.wantsField(drawsField) {
		return nil
	}
	if !p.wantsField(imageField) || len(p.Views) > 0 {
		message := drawsField + " goes with one picture of each sample"
		return &batch.PlanError{Field: "fields", Message: message, Nearest: `["image", "image.draws"]`}
	}
	return nil
}

// drawsFieldOf is the field of a batch that holds the draws of a chain.
func drawsFieldOf(c transform.Chain) batch.Field {
	return batch.Field{Name: drawsField, DType: "uint8", Shape: []int{valueHead + drawHead + drawBytes*c.MostDraws()}}
}

// setDraws writes what r drew for sample i, whose file's picture has size from, if the batch has it.
func (a *assembly) setDraws(i int, from size, r *renderer) error {
	row := a.drawsRow(i)
	if row == nil {
		return nil
	}
	told := drawnSample{Size: [2]int{from.h, from.w}, Draws: []json.RawMessage{}}
	for _, d := range r.Recorded() {
		told.Draws = append(told.Draws, d.Flat())
	}
	text := marshalCanonical(told)
	if len(text) > len(row)-valueHead {
		return &transform.OpError{Op: drawsField, Cause: fmt.Errorf("%d bytes, the limit is %d", len(text), len(row)-valueHead)}
	}
	setRow(row, text)
	return nil
}

// clearDraws empties the draws of sample i.
func (a *assembly) clearDraws(i int) { clear(a.drawsRow(i)) }

// drawsRow is where the draws of sample i go; nil: nobody asks.
func (a *assembly) drawsRow(i int) []byte {
	for _, f := range a.fields {
		if f.Name == drawsField {
			return a.want.Dst[f.Offset+i*f.Shape[0]:][:f.Shape[0]]
		}
	}
	return nil
}
