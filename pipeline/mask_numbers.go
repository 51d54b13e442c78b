package pipeline

import (
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// Masks are where masks lie, how they are called, and which numbers their pixels stand for.
type Masks struct {
	Source
	// PictureSuffix and Suffix are what names of pictures and of masks end with, before what tells the format: what is left names both.
	PictureSuffix string `json:"picture_suffix,omitempty"`
	Suffix        string `json:"suffix,omitempty"`
	// Palette are rows of a colour and its number, [r, g, b, number]: then masks are PNGs of colours.
	Palette [][]int `json:"palette,omitempty"`
	// Numbers are rows of a number of the file and the one that stands for it, [from, to].
	Numbers [][]int `json:"numbers,omitempty"`
	// Others is the number of colours, or numbers, that are in no row; nil: a mask that has some is refused.
	Others *int `json:"others,omitempty"`
}

// mostColours bounds the rows of a palette.
const mostColours = 4096

// withoutPlace are masks without the place where this machine finds them.
func (m *Masks) withoutPlace() *Masks {
	if m == nil {
		return nil
	}
	other := *m
	other.Source = Source{Fingerprint: m.Fingerprint}
	return &other
}

// checkNumbers looks at palette, numbers and others.
func (m *Masks) checkNumbers() error {
	switch {
	case len(m.Palette) > 0 && len(m.Numbers) > 0:
		return &batch.PlanError{Field: "masks", Message: "have a palette, of colours, or numbers, and not both"}
	case m.Others != nil && len(m.Palette) == 0 && len(m.Numbers) == 0:
		return &batch.PlanError{Field: "masks.others", Message: "needs a palette or numbers"}
	case m.Others != nil && (*m.Others < 0 || *m.Others > 255):
		return &batch.PlanError{Field: "masks.others", Message: "is no number from 0 to 255"}
	case len(m.Palette) > mostColours:
		return &batch.PlanError{Field: "masks.palette", Message: fmt.Sprintf("has %d colours, at most %d", len(m.Palette), mostColours)}
	}
	if err := checkRows("masks.palette", m.Palette, 4, "[r, g, b, number]"); err != nil {
		return err
	}
	return checkRows("masks.numbers", m.Numbers, 2, "[from, to]")
}

// checkRows refuses rows of another length, with numbers beyond a byte, and two of one key.
func checkRows(field string, rows [][]int, length int, form string) error {
	seen := make(map[[3]int]bool, len(rows))
	for i, row := range rows {
		at := fmt.Sprintf("%s[%d]", field, i)
		if len(row) != length {
			return &batch.PlanError{Field: at, Message: "is no row of " + form}
		}
		for _, v := range row {
			if v < 0 || v > 255 {
				return &batch.PlanError{Field: at, Message: fmt.Sprintf("%d is no number from 0 to 255", v)}
			}
		}
		var key [3]int
		copy(key[:], row[:length-1])
		if seen[key] {
			return &batch.PlanError{Field: at, Message: fmt.Sprintf("%v is there twice", row[:length-1])}
		}
		seen[key] = true
	}
	return nil
}

// numbering tells which number stands for a pixel of a mask. Nil: its own.
type numbering struct {
	colours map[[3]byte]byte // nil: of numbers
	table   [256]int         // negative: none
	others  int              // likewise
}

// newNumbering is that of a plan that was checked.
func (m *Masks) newNumbering() *numbering {
	if len(m.Palette) == 0 && len(m.Numbers) == 0 {
		return nil
	}
	n := &numbering{others: -1}
	if m.Others != nil {
		n.others = *m.Others
	}
	for i := range n.table {
		n.table[i] = n.others
	}
	for _, row := range m.Numbers {
		n.table[row[0]] = row[1]
	}
	if len(m.Palette) > 0 {
		n.colours = make(map[[3]byte]byte, len(m.Palette))
	}
	for _, row := range m.Palette {
		n.colours[[3]byte{byte(row[0]), byte(row[1]), byte(row[2])}] = byte(row[3])
	}
	return n
}

// ofColours reports whether files have colours in place of numbers.
func (n *numbering) ofColours() bool { return n != nil && n.colours != nil }

// find is the number of a pixel; negative: none.
func (n *numbering) find(pixel [3]byte) int {
	if n.colours == nil {
		return n.table[pixel[0]]
	}
	if v, there := n.colours[pixel]; there {
		return int(v)
	}
	return n.others
}

// numberedSource is a source of masks whose pixels get the numbers that stand for them, three times each.
type numberedSource struct {
	src     transform.Source
	numbers *numbering
	sink    pixel.Sink
	row     []byte
	unknown error // of the first pixel that no number stands for
}

// orItself is the source, or the one behind it where numbers stay as they are.
func (s *numberedSource) orItself() transform.Source {
	if s.numbers == nil {
		return s.src
	}
	return s
}

// Decode implements transform.Source.
func (s *numberedSource) Decode(r image.Rectangle, sink pixel.Sink) error {
	s.sink, s.row = sink, pixel.Grow(s.row, 3*r.Dx()+pixel.Pad)
	return s.src.Decode(r, s)
}

// Rows implements pixel.Sink.
func (s *numberedSource) Rows(pix []byte, stride, n int) {
	width := len(s.row) - pixel.Pad
	for i := range n {
		s.numberRow(pix[i*stride:][:width])
		s.sink.Rows(s.row, width, 1)
	}
}

// numberRow writes the numbers of a row's pixels. Neighbours are alike, mostly.
func (s *numberedSource) numberRow(pix []byte) {
	var last [3]byte
	number := -1
	for x := 0; x < len(pix); x += 3 {
		if at := [3]byte(pix[x : x+3]); at != last || number < 0 {
			last, number = at, s.numbers.find(at)
		}
		if number < 0 && s.unknown == nil {
			s.unknown = s.numbers.refuse(last)
		}
		s.row[x], s.row[x+1], s.row[x+2] = byte(number), byte(number), byte(number)
	}
}

// refuse is the error of a pixel that no number stands for.
func (n *numbering) refuse(pixel [3]byte) error {
	if n.colours == nil {
		return fmt.Errorf("has the number %d, which no other stands for: name it, or a number for all others", pixel[0])
	}
	return fmt.Errorf("has the colour (%d, %d, %d), which is not in the palette: name it, or a number for all others", pixel[0], pixel[1], pixel[2])
}
