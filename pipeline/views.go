package pipeline

import (
	"encoding/json"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// maxViews is how many views a plan may have.
const maxViews = 16

// parseViews reads the transforms of each view.
func (p *Plan) parseViews(views [][]json.RawMessage) error {
	if len(views) == 0 {
		return nil
	}
	if len(views) > maxViews {
		return &batch.PlanError{Field: "views", Message: fmt.Sprintf("%d views", len(views)), Nearest: fmt.Sprintf("at most %d", maxViews)}
	}
	p.Views = make([]transform.Chain, len(views))
	for k, raw := range views {
		var err error
		if p.Views[k], err = transform.Parse(raw); err != nil {
			return transformError(fmt.Sprintf("views[%d]", k), err)
		}
		if _, _, fixed := p.Views[k].OutputSize(); !fixed {
			message := "the results differ in size, which views cannot: end them with a size for all"
			return &batch.PlanError{Field: fmt.Sprintf("views[%d]", k), Message: message, Nearest: `{"op": "CenterCrop", "size": [224, 224]}`}
		}
	}
	return nil
}

// sharedPicture is the part of a decoded picture that several views are made of: decoded once, and then a source of
// each.
type sharedPicture struct {
	image pixel.Image
	at    image.Point // of its upper left corner in the picture
	rows  int         // that have come
}

// readRegion decodes the region, which is not empty.
func (s *sharedPicture) readRegion(src transform.Source, region image.Rectangle) error {
	s.image.Reset(region.Dx(), region.Dy())
	s.at, s.rows = region.Min, 0
	if err := src.Decode(region, s); err != nil {
		return err
	}
	if s.rows < s.image.H {
		return fmt.Errorf("the picture ended after %d of %d rows", s.rows, s.image.H)
	}
	return nil
}

// Rows implements pixel.Sink.
func (s *sharedPicture) Rows(pix []byte, stride, n int) {
	m := &s.image
	for i := range n {
		copy(m.Pix[(s.rows+i)*m.Stride:][:3*m.W], pix[i*stride:])
	}
	s.rows += n
}

// Decode implements transform.Source for regions within the one that was read.
func (s *sharedPicture) Decode(r image.Rectangle, sink pixel.Sink) error {
	r = r.Sub(s.at)
	sink.Rows(s.image.Pix[r.Min.Y*s.image.Stride+3*r.Min.X:], s.image.Stride, r.Dy())
	return nil
}

// openSource is what pictures are made of: the file's whole picture where that is kept, else the codec itself for one,
// and for several what they need of it, decoded once. A picture that does not decode is an error also where none of it
// is needed.
func (d *decoder) openSource(k *worker, all []renderer, from size) (transform.Source, error) {
	w, j := k.want, k.want.job
	var region image.Rectangle
	for i := range all {
		if !j.pictures[i].mask {
			region = region.Union(all[i].Region())
		}
	}
	if src, err := d.wholeSource(k, from, region); src != nil || err != nil {
		return src, err
	}
	switch {
	case region.Empty():
		return d.codec, d.codec.Check()
	case len(j.plan.Views) < 2:
		return d.codec, nil
	}
	err := d.shared.readRegion(d.stopWith(&w.cancelled, d.codec), region)
	if d.replaceStopped() {
		err = ErrCancelled
	}
	return &d.shared, err
}
