package lasthop

import (
	"fmt"
	"strings"

	"github.com/feedwater-io/feedwater/batch"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Picture is a field of images, and what becomes of them. A plan with views has several.
type Picture struct {
	Name string
	// Boxes is the field of its rectangles to erase.
	Boxes string
	// At is where it lies in a slot, in bytes; Height and Width are those of all samples, 0 where they differ.
	At, Height, Width int
	// Element is the bytes of one element in the final form, Planar whether that is channel × height × width.
	Element  int
	Planar   bool
	convert  convert // nil: as they come
	erasures [][]byte
	put      func(dst []byte, x float32) // one element; nil for bytes
}

// Hops are those of fields by name. A field that has none leaves as it comes.
type Hops map[string]*Hop

func (l Hops) hopOf(field string) *Hop {
	if hop := l[field]; hop != nil {
		return hop
	}
	return &Hop{}
}

// isPicture reports whether a field of one sample holds images.
func isPicture(f *pb.Field) bool { return f.Dtype == "uint8" && len(f.Shape) == 3 }

// FinalFields are fields of one sample as hops leave them; with none, as nodes send them.
func FinalFields(fields []*pb.Field, hops Hops) []batch.Field {
	var all []batch.Field
	for _, f := range fields {
		g := batch.Field{Name: f.Name, DType: f.Dtype, Shape: []int{}}
		for _, d := range f.Shape {
			g.Shape = append(g.Shape, int(d))
		}
		if isPicture(f) {
			hop := hops.hopOf(f.Name)
			if hop.DType != "" {
				g.DType = hop.DType
			}
			if hop.Layout == "chw" {
				g.Shape = []int{g.Shape[2], g.Shape[0], g.Shape[1]}
			}
		}
		all = append(all, g)
	}
	return all
}

// NewPictures are those among the fields of one sample, in order; offsetOf says where in a slot a field lies.
func NewPictures(fields []*pb.Field, offsetOf func(field string) int, hops Hops) ([]Picture, error) {
	var all []Picture
	for _, f := range fields {
		if !isPicture(f) {
			continue
		}
		p, err := newPicture(f, hops.hopOf(f.Name))
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
		p.At = offsetOf(f.Name)
		all = append(all, p)
	}
	return all, nil
}

func newPicture(f *pb.Field, hop *Hop) (p Picture, err error) {
	p = Picture{
		Name: f.Name, Boxes: eraseField + strings.TrimPrefix(f.Name, "image"), Height: int(f.Shape[0]), Width: int(f.Shape[1]),
		Element: hop.elementBytes(), Planar: hop.Layout == "chw", put: hop.newElementWriter(),
	}
	if p.convert, err = hop.newConverter(); err == nil {
		p.erasures, err = hop.decodeErasures()
	}
	return p, err
}

// WriteImage brings one image into its final form.
func (p *Picture) WriteImage(dst, src []byte) {
	if p.convert == nil {
		copy(dst, src)
	} else if len(src) > 0 {
		p.convert(dst, src)
	}
}

// SourceBytes is the bytes of one image as it comes.
func (p *Picture) SourceBytes() int { return p.Height * p.Width * 3 }

// ResultBytes is the bytes of one image in its final form.
func (p *Picture) ResultBytes() int { return p.SourceBytes() * p.Element }

// SidesOf are height and width of an image of that shape.
func (p *Picture) SidesOf(shape [3]int) (h, w int) {
	if p.Planar {
		return shape[1], shape[2]
	}
	return shape[0], shape[1]
}

// IsConverted reports whether images do not stay as they come.
func (p *Picture) IsConverted() bool { return p.convert != nil }

// EraseBoxes fills the rectangles of one image in its final form, of height h and width w: those that lie in boxes for
// image i of a batch. An error says that one leaves the image.
func (p *Picture) EraseBoxes(image []byte, h, w int, boxes []byte, i int) error {
	img := canvas{image, h, w, p.Element, p.Planar, p.put}
	for k, value := range p.erasures {
		if !img.eraseBox(boxes[(i*len(p.erasures)+k)*boxBytes:], value) {
			return fmt.Errorf("sample %d: a rectangle to erase leaves its image of %d×%d pixels", i, w, h)
		}
	}
	return nil
}

// HasErasures reports whether there may be rectangles to erase.
func (p *Picture) HasErasures() bool { return len(p.erasures) > 0 }
