package pipeline

import (
	"fmt"
	"slices"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// imageField is the array of the pictures, and boxField that of the rectangles that the last hop erases in them, for
// plans with RandomErasing. Of a plan with views each view has its own: "image.0", "erase.0", and "mask.0" where there are masks.
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
func newMask(suffix, path string, c transform.Chain) picture {
	c, _ = c.ForMasks() // the plan was checked
	p := picture{field: maskField + suffix, chain: c, path: path, mask: true}
	p.height, p.width, _ = c.OutputSize()
	p.bytes = p.height * p.width
	p.tail = newShift(p.bytes)
	return p
}

// listPictures are those that the plan makes of a sample: all pictures, and behind them their masks.
func (p *Plan) listPictures() []picture {
	var pictures, masks []picture
	add := func(suffix, path string, c transform.Chain) {
		pictures = append(pictures, newPicture(suffix, path, c))
		if p.Masks != nil {
			masks = append(masks, newMask(suffix, path, c))
		}
	}
	if len(p.Views) == 0 {
		add("", "", p.Transforms)
	}
	for k, c := range p.Views {
		add(fmt.Sprintf(".%d", k), fmt.Sprintf("Views/%d/", k), c)
	}
	return append(pictures, masks...)
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
