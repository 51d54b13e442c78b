package thumbnail

import (
	"image"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Of makes small pictures of the first ones of a batch. missing is why there are none.
func Of(header *pb.Header, data []byte) (pictures []*image.RGBA, missing string) {
	for _, f := range header.GetFields() {
		if f.Dtype != "uint8" || len(f.Shape) != 4 {
			continue
		}
		for i := range min(int(f.Shape[0]), Pictures) {
			if p := sampleOf(f, i, data); p != nil {
				pictures = append(pictures, p.shrink())
			}
		}
		if len(pictures) > 0 {
			return pictures, ""
		}
	}
	return nil, "the batches have no pictures of 8 bits"
}

// source is a picture in a batch: rows of pixels of so many bytes.
type source struct {
	pixels                  []byte
	height, width, channels int
}

// sampleOf finds a sample's picture; nil: it has none that can be shown, or the field is not as it says.
func sampleOf(f *pb.Field, i int, data []byte) *source {
	shape, begin := f.Shape[1:], f.Offset
	if len(f.RaggedOffsets) > i {
		if len(f.RaggedShapes) < 3*i+3 {
			return nil
		}
		begin += f.RaggedOffsets[i]
		shape = []uint64{uint64(f.RaggedShapes[3*i]), uint64(f.RaggedShapes[3*i+1]), uint64(f.RaggedShapes[3*i+2])}
	} else {
		begin += uint64(i) * shape[0] * shape[1] * shape[2]
	}
	const most = 1 << 16 // of a side: no product overflows
	if shape[0]-1 >= most || shape[1]-1 >= most || shape[2] != 1 && shape[2] != 3 {
		return nil
	}
	size := shape[0] * shape[1] * shape[2]
	if begin > uint64(len(data)) || size > uint64(len(data))-begin {
		return nil
	}
	return &source{data[begin : begin+size], int(shape[0]), int(shape[1]), int(shape[2])}
}

// points is how many pixels are looked at for one of a thumbnail, in each direction: what a thumbnail costs does not
// grow with its picture.
const points = 3

// shrink fits a picture into Side × Side; small ones stay as they are.
func (s *source) shrink() *image.RGBA {
	longest := max(s.height, s.width, Side)
	height, width := max(s.height*Side/longest, 1), max(s.width*Side/longest, 1)
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			at := m.PixOffset(x, y)
			s.meanAround(y, height, x, width, m.Pix[at:at+3])
			m.Pix[at+3] = 255
		}
	}
	return m
}

// meanAround writes the mean of points × points pixels below one of a thumbnail.
func (s *source) meanAround(y, height, x, width int, to []byte) {
	var sum [3]int
	for i := range points {
		row := ((2*points*y + 2*i + 1) * s.height) / (2 * points * height)
		for k := range points {
			column := ((2*points*x + 2*k + 1) * s.width) / (2 * points * width)
			p := s.pixels[(row*s.width+column)*s.channels:]
			for c := range sum {
				sum[c] += int(p[min(c, s.channels-1)])
			}
		}
	}
	for c, v := range sum {
		to[c] = byte((v + points*points/2) / (points * points))
	}
}
