package pipeline

import (
	"fmt"
	"slices"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// imageField is the array of the pictures, and boxField that of the rectangles that the last hop erases in them, for
// plans with RandomErasing. Of a plan with views each view has its own: "image.0", "erase.0".
const (
	imageField = "image"
	boxField   = "erase"
)

// A picture is an image that a job makes of each sample: one field of the batch.
type picture struct {
	field, boxes string
	chain        transform.Chain
	path         string // what its draws are keyed behind
	// height and width of all results, 0 where samples differ; bytes is what one takes. tail appends one to a checksum.
	height, width, bytes int
	tail                 shift
	mask                 bool // of one number for each pixel
}

func newPicture(suffix, path string, c transform.Chain) picture {
	p := picture{field: imageField + suffix, boxes: boxField + suffix, chain: c, path: path}
	p.height, p.width, _ = c.OutputSize()
	p.bytes = p.height * p.width * 3
	p.tail = newShift(p.bytes)
	return p
}

// newMask is the mask of a picture that the chain makes.
func newMask(c transform.Chain) picture {
	c, _ = c.ForMasks() // the plan was checked
	p := picture{field: maskField, chain: c, mask: true}
	p.height, p.width, _ = c.OutputSize()
	p.bytes = p.height * p.width
	p.tail = newShift(p.bytes)
	return p
}

// listPictures are those that the plan makes of a sample.
func (p *Plan) listPictures() []picture {
	if p.Masks != nil {
		return []picture{newPicture("", "", p.Transforms), newMask(p.Transforms)}
	}
	if len(p.Views) == 0 {
		return []picture{newPicture("", "", p.Transforms)}
	}
	all := make([]picture, len(p.Views))
	for k, c := range p.Views {
		all[k] = newPicture(fmt.Sprintf(".%d", k), fmt.Sprintf("Views/%d/", k), c)
	}
	return all
}

// fieldOf is the field of a batch that holds it.
func (p *picture) fieldOf() batch.Field {
	if p.mask {
		return batch.Field{Name: p.field, DType: "uint8", Shape: []int{p.height, p.width}}
	}
	return batch.Field{Name: p.field, DType: "uint8", Shape: []int{p.height, p.width, 3}}
}

// isRagged reports whether samples differ in size.
func (p *picture) isRagged() bool { return p.bytes == 0 }

// handsOver reports whether a field holds pictures, which Want.Image gets; masks are none.
func (j *Job) handsOver(field string) bool {
	return slices.ContainsFunc(j.pictures, func(p picture) bool { return p.field == field && !p.mask })
}
