// Package sheet draws contact sheets: rows of pictures of samples, each over what was drawn for it.
package sheet

import (
	"cmp"
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
	"golang.org/x/image/font/basicfont"
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
	face   = basicfont.Face7x13
)

// Gap is what lies between pictures and around them, in pixels.
const Gap = 12

const lineSpace = 15

// AddSample puts a sample behind what is there, each of its views in a cell, with pictures of at most width × width. The first one is the original, which
// has a title instead of draws.
func (r *Row) AddSample(s *pipeline.Sample, original bool, width int) {
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

// drawnLine is what an op drew, faint where it left the picture alone.
func drawnLine(d *transform.Draw) line {
	if !d.Applied {
		return line{d.Op + ": no", faint}
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

// Draw draws rows whose pictures are at most width pixels wide.
func Draw(rows []Row, width int) image.Image {
	columns := 0
	for i := range rows {
		rows[i].breakLines(width)
		columns = max(columns, len(rows[i].cells))
	}
	height := Gap
	for i := range rows {
		height += rows[i].totalHeight() + Gap
	}
	sheet := imaging.New(Gap+columns*(width+Gap), height, paper)
	y := Gap
	for i := range rows {
		rows[i].drawOn(sheet, y, width)
		y += rows[i].totalHeight() + Gap
	}
	return sheet
}

// breakLines makes lines short enough.
func (r *Row) breakLines(width int) {
	letters := max(1, width/face.Advance)
	for i := range r.cells {
		c := &r.cells[i]
		var lines []line
		for _, l := range c.lines {
			for _, text := range breakText(l.text, letters) {
				lines = append(lines, line{text, l.colour})
			}
		}
		c.lines = lines
	}
}

// breakText breaks text into lines of so many letters, at spaces where it can; those after the first are indented.
func breakText(text string, letters int) (lines []string) {
	rest := []rune(text)
	for len(rest) > letters {
		cut := letters
		if at := lastSpace(rest[:letters+1]); at > letters/3 {
			cut = at
		}
		lines = append(lines, string(rest[:cut]))
		rest = append([]rune("  "), []rune(strings.TrimLeft(string(rest[cut:]), " "))...)
		if letters < 4 {
			rest = rest[2:]
		}
	}
	return append(lines, string(rest))
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

func (r *Row) drawOn(sheet *image.NRGBA, top, width int) {
	below := top + r.pictureHeight()
	for i, c := range r.cells {
		left := Gap + i*(width+Gap)
		if c.picture != nil {
			b := c.picture.Bounds()
			draw.Draw(sheet, b.Sub(b.Min).Add(image.Pt(left, below-b.Dy())), c.picture, b.Min, draw.Src)
		}
		for n, l := range c.lines {
			pen := font.Drawer{Dst: sheet, Src: image.NewUniform(l.colour), Face: face, Dot: fixed.P(left, below+4+face.Ascent+n*lineSpace)}
			pen.DrawString(l.text)
		}
	}
}
