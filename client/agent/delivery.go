package agent

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/agent/lasthop"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// delivery is a want's room: the slot in its final form, and where the batch arrives in it.
//
// A batch that is not converted arrives at the slot's start. One that is arrives at the slot's end, and images are
// converted from there towards the start: the results are at least as big as the sources, so a result never covers a
// source that is still needed, but its own at most.
type delivery struct {
	want  want
	slots *slots
	name  *pb.Name
	slot  []byte
	wire  []byte                             // Dst of the want
	image func(view, offset int, pix []byte) // converts at once, where the node is this process
	grow  func(bytes int) []byte
	spare []byte // where it arrives from a second node, if one was asked
	// stores are those to tell the trainer of, since nodes came that read others than it knows; nil: none.
	stores map[string]string
}

// newDelivery lends the want's slot; deliver gives it back.
func newDelivery(w want, s *slots) (*delivery, error) {
	if w.count < 1 || int(w.count) > s.samples {
		return nil, &roomError{newLayout(s.fields, int(w.count)).bytes}
	}
	slot, err := s.lendSlot(w.slot)
	if err != nil {
		return nil, err
	}
	b := &delivery{want: w, slots: s, slot: slot, wire: slot}
	b.name = &pb.Name{Epoch: w.epoch, Samples: &pb.Name_Range{Range: &pb.Range{Position: w.position, Count: w.count}}}
	if w.flags&flagListed != 0 {
		b.name.Samples = &pb.Name_List{List: b.readIndices()}
	}
	if !s.hasConversions() {
		return b, nil
	}
	arriving, wire := batch.Place(s.arriving, int(w.count))
	if slices.ContainsFunc(arriving, func(f batch.Field) bool { return f.Bytes == 0 }) { // samples differ in size
		return b, nil
	}
	if wire > len(slot) {
		s.endUse()
		return nil, &roomError{wire}
	}
	b.wire = slot[len(slot)-wire:]
	b.image = func(view, offset int, pix []byte) {
		p := &s.pictures[view]
		p.WriteImage(b.imageBytes(p, offset), pix)
	}
	return b, nil
}

// imageBytes is where image i of a picture ends up.
func (b *delivery) imageBytes(p *lasthop.Picture, i int) []byte {
	return b.slot[p.At+i*p.ResultBytes():][:p.ResultBytes()]
}

// readIndices reads the indices that the trainer put into the slot.
func (b *delivery) readIndices() *pb.List {
	n := int(b.want.count)
	l := &pb.List{Indices: make([]uint64, n), Repeats: make([]uint32, n)}
	raw := b.slot[b.slots.offsetOf("index"):]
	for i := range n {
		l.Indices[i] = binary.LittleEndian.Uint64(raw[8*i:])
		l.Repeats[i] = uint32(b.want.position) + uint32(i)
	}
	return l
}

// lendSpare lends memory for a second node.
func (b *delivery) lendSpare(bytes int) []byte {
	b.spare = b.slots.spares.lendBuffer(bytes)
	return b.spare
}

// arrivedInSpare reports whether the batch arrived from a second node, beside its slot.
func (b *delivery) arrivedInSpare(r client.Result) bool {
	return len(b.spare) > 0 && len(r.Data) > 0 && &b.spare[0] == &r.Data[0]
}

// hasPixelWork tells whether placeBatch has pixels to convert or to move.
func (b *delivery) hasPixelWork(r client.Result) bool {
	return b.slots.hasConversions() && !r.Imaged || b.arrivedInSpare(r)
}

// placeBatch brings an arrived batch into its final form and returns the JSON that goes with it, or nil.
func (b *delivery) placeBatch(r client.Result) ([]byte, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	arrived, err := b.checkArrays(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", node.NameOf(r.Node), err)
	}
	small := map[string][]byte{}
	for name, f := range arrived {
		if !b.slots.isPicture(name) {
			small[name] = append([]byte(nil), f.data...)
		}
	}
	var ragged raggedJSONs
	if !r.Imaged {
		if ragged, err = b.placePictures(arrived, b.arrivedInSpare(r)); err != nil {
			return nil, err
		}
	}
	for name, data := range small {
		if o := b.slots.offsetOf(name); o >= 0 {
			copy(b.slot[o:], data)
		}
	}
	return b.extraJSON(r, ragged), b.eraseBoxes(ragged)
}

// placePictures places all images: from the first on where they are converted, from the slot's end towards its start,
// and else from the last on, since they move towards the end.
func (b *delivery) placePictures(arrived map[string]*arrival, beside bool) (raggedJSONs, error) {
	all := raggedJSONs{}
	n := len(b.slots.pictures)
	for k := range n {
		if !b.slots.hasConversions() {
			k = n - 1 - k
		}
		p := &b.slots.pictures[k]
		f := arrived[p.Name]
		if f == nil {
			continue
		}
		ragged, err := b.placeImages(p, f, beside)
		if err != nil {
			return nil, err
		}
		if ragged != nil {
			all[p.Name] = ragged
		}
	}
	return all, nil
}

// arrival is one array of an arrived batch.
type arrival struct {
	*pb.Field
	data []byte
}

// checkArrays checks that the batch is what was wanted: the fields of the slot, for that many samples, within its
// bytes.
func (b *delivery) checkArrays(r client.Result) (map[string]*arrival, error) {
	all := map[string]*arrival{}
	for _, f := range r.Header.Fields {
		n, ok := node.FieldBytes(f)
		if !ok || len(f.Shape) == 0 || f.Shape[0] != uint64(b.want.count) {
			return nil, fmt.Errorf("field %q of shape %v for %d samples", f.Name, f.Shape, b.want.count)
		}
		if r.Imaged && b.slots.isPicture(f.Name) {
			n = 0
		}
		if f.Offset > uint64(len(r.Data)) || n > uint64(len(r.Data))-f.Offset {
			return nil, fmt.Errorf("field %q does not lie within the batch of %d bytes", f.Name, len(r.Data))
		}
		all[f.Name] = &arrival{f, r.Data[f.Offset : f.Offset+n]}
	}
	return all, nil
}

// placeImages converts images that arrived, in the slot or beside it, or moves them to their place.
func (b *delivery) placeImages(p *lasthop.Picture, f *arrival, beside bool) (*raggedJSON, error) {
	if len(f.RaggedOffsets) > 0 {
		return b.placeRagged(p, f, b.slot[p.At:])
	}
	n := p.SourceBytes()
	if len(f.data) != int(b.want.count)*n {
		return nil, fmt.Errorf("%d bytes of images for %d samples of %d", len(f.data), b.want.count, n)
	}
	if !b.slots.hasConversions() {
		if beside || int(f.Offset) != p.At {
			copy(b.slot[p.At:], f.data)
		}
		return nil, nil
	}
	if n < batch.Align { // what aligns the fields is more than what results grow by
		f.data = bytes.Clone(f.data)
	}
	var aside []byte
	arrived := len(b.slot) - len(b.wire) + int(f.Offset)
	for i := range int(b.want.count) {
		src := f.data[i*n : (i+1)*n]
		if !beside && p.At+(i+1)*p.ResultBytes() > arrived+i*n { // the result covers its own source
			aside = append(aside[:0], src...)
			src = aside
		}
		p.WriteImage(b.imageBytes(p, i), src)
	}
	return nil, nil
}

// raggedJSON tells where the images of differing sizes lie.
type raggedJSON struct {
	Offsets []int    `json:"offsets"`
	Shapes  [][3]int `json:"shapes"`
}

// raggedJSONs are those of fields by name; empty if samples do not differ in size.
type raggedJSONs map[string]*raggedJSON

// placeRagged puts images of differing sizes behind each other at dst.
func (b *delivery) placeRagged(p *lasthop.Picture, f *arrival, dst []byte) (*raggedJSON, error) {
	n := int(b.want.count)
	if len(f.RaggedOffsets) != n+1 || len(f.RaggedShapes) != 3*n {
		return nil, fmt.Errorf("%d offsets and %d shapes for %d images", len(f.RaggedOffsets), len(f.RaggedShapes), n)
	}
	scale := p.Element
	src := append([]byte(nil), f.data...)
	if len(src)*scale > len(dst) {
		return nil, &roomError{len(b.slot) - len(dst) + len(src)*scale}
	}
	j := &raggedJSON{Offsets: make([]int, n+1), Shapes: make([][3]int, n)}
	for i := range n {
		from, to := int(f.RaggedOffsets[i]), int(f.RaggedOffsets[i+1])
		h, w := int(f.RaggedShapes[3*i]), int(f.RaggedShapes[3*i+1])
		if from > to || to > len(src) || to-from != h*w*3 {
			return nil, fmt.Errorf("image %d: %d×%d pixels in bytes %d to %d", i, w, h, from, to)
		}
		out := dst[from*scale : to*scale]
		j.Shapes[i], j.Offsets[i+1] = [3]int{h, w, 3}, to*scale
		p.WriteImage(out, src[from:to])
		if p.Planar {
			j.Shapes[i] = [3]int{3, h, w}
		}
	}
	return j, nil
}

// named is how many broken samples of a batch are told with all that is known of them, if they are too many for a
// packet.
const maxNamedErrors = 16

// extraJSON is what goes with a done packet, nil if there is nothing to say.
func (b *delivery) extraJSON(r client.Result, ragged raggedJSONs) []byte {
	if len(r.Header.Errors) == 0 && len(ragged) == 0 && len(b.stores) == 0 {
		return nil
	}
	extra := struct {
		Errors []sampleError     `json:"errors,omitempty"`
		Ragged raggedJSONs       `json:"ragged,omitempty"`
		Stores map[string]string `json:"stores,omitempty"`
	}{Ragged: ragged, Stores: b.stores}
	for _, e := range r.Header.Errors {
		extra.Errors = append(extra.Errors, newSampleError(e, r.Node))
	}
	text := mustJSON(extra)
	if len(text) <= maxExtra {
		return text
	}
	for i := range extra.Errors {
		extra.Errors[i] = extra.Errors[i].toBrief(i < maxNamedErrors)
	}
	return mustJSON(extra)
}

// tooMuchToTell is the error of a batch whose description does not fit a packet, not even in brief.
func tooMuchToTell(count uint32, r client.Result) error {
	errs := r.Header.Errors
	if len(errs) == 0 {
		return &failure{Kind: "data", Message: fmt.Sprintf("%d samples of different sizes are too many for one batch", count)}
	}
	first := newSampleError(errs[0], r.Node)
	return &failure{Kind: "data", Message: fmt.Sprintf("%d of the %d samples of a batch do not decode, too many to go on; the first: %s: %s: %s",
		len(errs), count, first.Key, first.Op, first.Cause)}
}

// eraseBoxes fills the rectangles of a batch whose images, and their sizes, are in their final form.
func (b *delivery) eraseBoxes(ragged raggedJSONs) error {
	for k := range b.slots.pictures {
		p := &b.slots.pictures[k]
		if err := b.erasePicture(p, ragged[p.Name]); err != nil {
			return err
		}
	}
	return nil
}

// erasePicture is eraseBoxes for one field of images.
func (b *delivery) erasePicture(p *lasthop.Picture, ragged *raggedJSON) error {
	boxes := b.slots.offsetOf(p.Boxes)
	if !p.HasErasures() || boxes < 0 {
		return nil
	}
	h, w, n := p.Height, p.Width, p.ResultBytes()
	for i := range int(b.want.count) {
		at := p.At + i*n
		if ragged != nil {
			at, n = p.At+ragged.Offsets[i], ragged.Offsets[i+1]-ragged.Offsets[i]
			h, w = p.SidesOf(ragged.Shapes[i])
		}
		if err := p.EraseBoxes(b.slot[at:at+n], h, w, b.slot[boxes:], i); err != nil {
			return err
		}
	}
	return nil
}
