// Package sheet draws contact sheets: rows of pictures of samples, each over what was drawn for it.
package sheet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/disintegration/imaging"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// Row is a sample on a contact sheet: the picture as it is, and what became of it. The zero value is empty.
type Row struct {
	// Made: there is a picture of it beside the original. Cause is why there is none of the first that there is none of.
	Made  bool
	Cause string
	cells []cell
}

// cell is a picture over some lines of text.
type cell struct {
	picture image.Image // nil if there is none
	lines   []line
	// crop is the part of the original that it was made of; empty: all, or it is not known.
	crop image.Rectangle
	// size is that of the picture before it was made smaller.
	size image.Point
}

type line struct {
	text   string
	colour color.Color
}

var (
	paper  = color.NRGBA{255, 255, 255, 255}
	ink    = color.NRGBA{30, 36, 44, 255}
	faint  = color.NRGBA{150, 156, 164, 255}
	failed = color.NRGBA{190, 30, 30, 255}
	// frames are the colours of columns, whose crops are drawn on the original; they begin anew when there are more.
	frames = []color.NRGBA{{214, 39, 40, 255}, {31, 119, 180, 255}, {44, 140, 44, 255}, {148, 103, 189, 255}, {200, 110, 0, 255}, {0, 140, 150, 255}}
)

// newFace is the font of all text: Go Regular, which comes with the library.
func newFace() font.Face {
	parsed, err := opentype.Parse(goregular.TTF)
	if err == nil {
		var face font.Face
		if face, err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: 12.5, DPI: 72, Hinting: font.HintingFull}); err == nil {
			return face
		}
	}
	panic(err) // the font is part of this program
}

// Gap is what lies between pictures and around them, in pixels.
const Gap = 12

const lineSpace = 15

// AddSample puts a sample behind what is there, each of its views in a cell, with pictures of at most width × width. The first one is the original, which
// has a title instead of draws.
//
// Of views whose chain begins with a RandomResizedCrop the sheet shows what was cut from the original. chains are those of
// the sample's views.
func (r *Row) AddSample(s *pipeline.Sample, original bool, width int, chains []transform.Chain) {
	views := s.Views
	if len(views) == 0 {
		views = []pipeline.View{{Height: s.Height, Width: s.Width, Image: s.Image, Draws: s.Draws}}
	}
	for i := range views {
		c := cell{}
		if s.Err != nil {
			cause := s.Err.Cause.Error()
			c.lines = append(c.lines, line{cause, failed})
			r.Cause = cmp.Or(r.Cause, filename.Text(s.Key)+": "+cause)
		} else {
			r.Made = r.Made || !original
			c.picture = imaging.Fit(toImage(&views[i]), width, width, imaging.Lanczos)
			c.size = image.Pt(views[i].Width, views[i].Height)
			if i < len(chains) {
				c.crop = cropOf(chains[i], views[i].Draws)
			}
		}
		if original {
			c.lines = append([]line{{filename.Text(s.Key), ink}}, c.lines...)
			c.lines = append(c.lines, line{fmt.Sprintf("%d x %d, index %d", s.Width, s.Height, s.Index), faint})
		}
		for k := range views[i].Draws {
			c.lines = append(c.lines, drawnLine(&views[i].Draws[k]))
		}
		r.cells = append(r.cells, c)
	}
}

// cropOf is the part of the original that a chain takes first; empty where it begins with something else.
func cropOf(c transform.Chain, draws []transform.Draw) image.Rectangle {
	const op = "RandomResizedCrop"
	if steps := c.Infos(); len(steps) == 0 || steps[0].Name != op || len(draws) == 0 || draws[0].Op != op {
		return image.Rectangle{}
	}
	var p struct{ Top, Left, Height, Width int }
	if json.Unmarshal(draws[0].Parameters, &p) != nil {
		return image.Rectangle{}
	}
	return image.Rect(p.Left, p.Top, p.Left+p.Width, p.Top+p.Height)
}

// drawnLine is what an op drew, faint where it left the picture alone.
func drawnLine(d *transform.Draw) line {
	if !d.Applied {
		return line{d.Op + ": no", faint}
	}
	if text := policyText(d.Parameters); text != "" {
		return line{text, ink}
	}
	text := fractions.ReplaceAllStringFunc(string(d.Parameters), func(number string) string {
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return number
		}
		return strconv.FormatFloat(x, 'g', 4, 64)
	})
	text = strings.NewReplacer(`"`, "", "{", "", "}", "", ":", " ", ",", ", ").Replace(text)
	return line{strings.TrimSpace(d.Op + " " + text), ink}
}

// policyText is what a policy such as RandAugment has chosen, "Equalize · ShearX 0.09"; empty: these are other parameters.
func policyText(parameters json.RawMessage) string {
	var p struct {
		Ops []struct {
			Name      string
			Magnitude float64
		}
	}
	if json.Unmarshal(parameters, &p) != nil {
		return ""
	}
	var chosen []string
	for _, o := range p.Ops {
		if o.Magnitude != 0 {
			o.Name += " " + strconv.FormatFloat(o.Magnitude, 'g', 4, 64)
		}
		chosen = append(chosen, o.Name)
	}
	return strings.Join(chosen, " · ")
}

// fractions are numbers of JSON with more digits than people read.
var fractions = regexp.MustCompile(`-?\d+(\.\d+([eE][-+]?\d+)?|[eE][-+]?\d+)`)

// toImage is a picture for drawing.
func toImage(s *pipeline.View) image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, s.Width, s.Height))
	for i, j := 0, 0; i < len(s.Image); i, j = i+3, j+4 {
		copy(m.Pix[j:], s.Image[i:i+3])
		m.Pix[j+3] = 255
	}
	return m
}

// TitleHeight is what the titles of columns take above the first row, in pixels.
const TitleHeight = 22

// Draw draws rows whose pictures are at most width pixels wide, below a title for each column.
func Draw(rows []Row, titles []string, width int) image.Image {
	face := newFace()
	columns := 0
	height := Gap + TitleHeight
	for i := range rows {
		rows[i].drawCrops()
		rows[i].breakLines(face, width)
		columns = max(columns, len(rows[i].cells))
		height += rows[i].totalHeight() + Gap
	}
	sheet := imaging.New(Gap+columns*(width+Gap), height, paper)
	for i, title := range titles[:min(len(titles), columns)] {
		colour := ink
		if i > 0 {
			colour = frameOf(i)
		}
		lines := breakText(title, func(text string) bool { return font.MeasureString(face, text).Ceil() <= width })
		drawText(sheet, face, line{lines[0], colour}, Gap+i*(width+Gap), Gap)
	}
	y := Gap + TitleHeight
	for i := range rows {
		rows[i].drawOn(sheet, face, y, width)
		y += rows[i].totalHeight() + Gap
	}
	return sheet
}

// frameOf is the colour of a column behind the first one.
func frameOf(column int) color.NRGBA { return frames[(column-1)%len(frames)] }

// drawCrops draws on the original what the other pictures were cut from, each in the colour of its column.
func (r *Row) drawCrops() {
	if len(r.cells) == 0 || r.cells[0].picture == nil {
		return
	}
	original := &r.cells[0]
	marked := imaging.Clone(original.picture)
	b := marked.Bounds()
	for i, c := range r.cells[1:] {
		if c.crop.Empty() || !c.crop.In(image.Rectangle{Max: original.size}) {
			continue
		}
		scaled := image.Rect(
			c.crop.Min.X*b.Dx()/original.size.X, c.crop.Min.Y*b.Dy()/original.size.Y,
			c.crop.Max.X*b.Dx()/original.size.X, c.crop.Max.Y*b.Dy()/original.size.Y,
		)
		drawFrame(marked, scaled, frameOf(i+1))
	}
	original.picture = marked
}

// drawFrame draws a rectangle's edge, two pixels wide and within it.
func drawFrame(m *image.NRGBA, r image.Rectangle, colour color.NRGBA) {
	inner := r.Inset(2)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if !image.Pt(x, y).In(inner) {
				m.SetNRGBA(x, y, colour)
			}
		}
	}
}

// breakLines makes lines short enough.
func (r *Row) breakLines(face font.Face, width int) {
	fits := func(text string) bool { return font.MeasureString(face, text).Ceil() <= width }
	for i := range r.cells {
		c := &r.cells[i]
		var lines []line
		for _, l := range c.lines {
			for _, text := range breakText(l.text, fits) {
				lines = append(lines, line{text, l.colour})
			}
		}
		c.lines = lines
	}
}

// breakText breaks text into lines that fit, at spaces where it can; those after the first are indented. A line has one
// letter at least.
func breakText(text string, fits func(string) bool) (lines []string) {
	rest, indent := []rune(text), ""
	for !fits(indent + string(rest)) {
		letters := len(rest) - 1
		for letters > 1 && !fits(indent+string(rest[:letters])) {
			letters--
		}
		if letters < 1 {
			break
		}
		cut := letters
		if at := lastSpace(rest[:letters+1]); at > letters/3 {
			cut = at
		}
		lines = append(lines, indent+string(rest[:cut]))
		rest, indent = []rune(strings.TrimLeft(string(rest[cut:]), " ")), "  "
	}
	return append(lines, indent+string(rest))
}

func lastSpace(text []rune) int {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == ' ' {
			return i
		}
	}
	return -1
}

// pictureHeight is the height of the tallest one.
func (r *Row) pictureHeight() int {
	h := 0
	for _, c := range r.cells {
		if c.picture != nil {
			h = max(h, c.picture.Bounds().Dy())
		}
	}
	return h
}

func (r *Row) totalHeight() int {
	lines := slices.MaxFunc(r.cells, func(a, b cell) int { return len(a.lines) - len(b.lines) })
	return r.pictureHeight() + 4 + lineSpace*len(lines.lines)
}

func (r *Row) drawOn(sheet *image.NRGBA, face font.Face, top, width int) {
	below := top + r.pictureHeight()
	for i, c := range r.cells {
		left := Gap + i*(width+Gap)
		if c.picture != nil {
			b := c.picture.Bounds()
			draw.Draw(sheet, b.Sub(b.Min).Add(image.Pt(left, below-b.Dy())), c.picture, b.Min, draw.Src)
		}
		for n, l := range c.lines {
			drawText(sheet, face, l, left, below+4+n*lineSpace)
		}
	}
}

func drawText(sheet *image.NRGBA, face font.Face, l line, left, top int) {
	pen := font.Drawer{Dst: sheet, Src: image.NewUniform(l.colour), Face: face, Dot: fixed.P(left, top+face.Metrics().Ascent.Ceil())}
	pen.DrawString(l.text)
}
