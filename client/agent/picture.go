package agent

import (
	"fmt"
	"strings"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// picture is a field of images, and how they leave the agent. A plan with views has several.
type picture struct {
	name  string
	boxes string // the field of its rectangles to erase
	// at is where it lies in a slot; height and width are those of all samples, 0 where they differ.
	at, height, width int
	convert           convert // nil: as they come
	element           int     // bytes of one element
	planar            bool
	erasures          [][]byte
	put               func(dst []byte, x float32) // one element; nil for bytes
}

// LastHops are those of fields by name. A field that has none leaves as it comes.
type LastHops map[string]*LastHop

func (l LastHops) hopOf(field string) *LastHop {
	if hop := l[field]; hop != nil {
		return hop
	}
	return &LastHop{}
}

// isPicture reports whether a field of one sample holds images.
func isPicture(f *pb.Field) bool { return f.Dtype == "uint8" && len(f.Shape) == 3 }

// newPictures are those among the fields, in order.
func newPictures(fields []*pb.Field, l *layout, hops LastHops) ([]picture, error) {
	var all []picture
	for _, f := range fields {
		if !isPicture(f) {
			continue
		}
		p, err := newPicture(f, hops.hopOf(f.Name))
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
		p.at = l.offsetOf(f.Name)
		all = append(all, p)
	}
	return all, nil
}

func newPicture(f *pb.Field, hop *LastHop) (p picture, err error) {
	p = picture{
		name: f.Name, boxes: eraseField + strings.TrimPrefix(f.Name, "image"), height: int(f.Shape[0]), width: int(f.Shape[1]),
		element: hop.elementBytes(), planar: hop.Layout == "chw", put: hop.newElementWriter(),
	}
	if p.convert, err = hop.newConverter(); err == nil {
		p.erasures, err = hop.decodeErasures()
	}
	return p, err
}

// writeImage brings one image into its final form.
func (p *picture) writeImage(dst, src []byte) {
	if p.convert == nil {
		copy(dst, src)
	} else if len(src) > 0 {
		p.convert(dst, src)
	}
}

// sourceBytes is the bytes of one image as it comes.
func (p *picture) sourceBytes() int { return p.height * p.width * 3 }

// resultBytes is the bytes of one image in its final form.
func (p *picture) resultBytes() int { return p.sourceBytes() * p.element }

// sidesOf are height and width of an image of that shape.
func (p *picture) sidesOf(shape [3]int) (h, w int) {
	if p.planar {
		return shape[1], shape[2]
	}
	return shape[0], shape[1]
}
