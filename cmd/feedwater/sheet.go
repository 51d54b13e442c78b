package main

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

// sheetRow is a sample on a contact sheet: the picture as it is, and what became of it.
type sheetRow struct {
	cells []sheetCell
	made  bool   // there is a picture of it beside the original
	cause string // of the first that there is none of
}

// sheetCell is a picture over some lines of text.
type sheetCell struct {
	picture image.Image // nil if there is none
	lines   []sheetLine
}

type sheetLine struct {
	text string
	ink  color.Color
}

var (
	sheetPaper = color.NRGBA{255, 255, 255, 255}
	sheetInk   = color.NRGBA{30, 36, 44, 255}
	sheetFaint = color.NRGBA{150, 156, 164, 255}
	sheetError = color.NRGBA{190, 30, 30, 255}
	sheetFont  = basicfont.Face7x13
)

const (
	sheetGap  = 12
	lineSpace = 15
)

// addSample puts a sample behind what is there, each of its views in a cell, with pictures of at most width × width. The first one is the original, which
// has a title instead of draws.
func (r *sheetRow) addSample(s *pipeline.Sample, original bool, width int) {
	views := s.Views
	if len(views) == 0 {
		views = []pipeline.View{{Height: s.Height, Width: s.Width, Image: s.Image, Draws: s.Draws}}
	}
	for i := range views {
		c := sheetCell{}
		if s.Err != nil {
			cause := s.Err.Cause.Error()
			c.lines = append(c.lines, sheetLine{cause, sheetError})
			r.cause = cmp.Or(r.cause, filename.Text(s.Key)+": "+cause)
		} else {
			r.made = r.made || !original
			c.picture = imaging.Fit(toImage(&views[i]), width, width, imaging.Lanczos)
		}
		if original {
			c.lines = append([]sheetLine{{filename.Text(s.Key), sheetInk}}, c.lines...)
			c.lines = append(c.lines, sheetLine{fmt.Sprintf("%d x %d, index %d", s.Width, s.Height, s.Index), sheetFaint})
		}
		for k := range views[i].Draws {
			c.lines = append(c.lines, drawnLine(&views[i].Draws[k]))
		}
		r.cells = append(r.cells, c)
	}
}

// drawnLine is what an op drew, faint where it left the picture alone.
func drawnLine(d *transform.Draw) sheetLine {
	if !d.Applied {
		return sheetLine{d.Op + ": no", sheetFaint}
	}
	text := fractions.ReplaceAllStringFunc(string(d.Parameters), func(number string) string {
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return number
		}
		return strconv.FormatFloat(x, 'g', 4, 64)
	})
	text = strings.NewReplacer(`"`, "", "{", "", "}", "", ":", " ", ",", ", ").Replace(text)
	return sheetLine{strings.TrimSpace(d.Op + " " + text), sheetInk}
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

// drawRows draws rows of cells that are so wide.
func drawRows(rows []sheetRow, width int) image.Image {
	columns := 0
	for i := range rows {
		rows[i].breakLines(width)
		columns = max(columns, len(rows[i].cells))
	}
	height := sheetGap
	for i := range rows {
		height += rows[i].totalHeight() + sheetGap
	}
	sheet := imaging.New(sheetGap+columns*(width+sheetGap), height, sheetPaper)
	y := sheetGap
	for i := range rows {
		rows[i].drawOn(sheet, y, width)
		y += rows[i].totalHeight() + sheetGap
	}
	return sheet
}

// breakLines makes lines short enough.
func (r *sheetRow) breakLines(width int) {
	letters := max(1, width/sheetFont.Advance)
	for i := range r.cells {
		c := &r.cells[i]
		var lines []sheetLine
		for _, l := range c.lines {
			for _, text := range breakText(l.text, letters) {
				lines = append(lines, sheetLine{text, l.ink})
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
func (r *sheetRow) pictureHeight() int {
	h := 0
	for _, c := range r.cells {
		if c.picture != nil {
			h = max(h, c.picture.Bounds().Dy())
		}
	}
	return h
}

func (r *sheetRow) totalHeight() int {
	lines := slices.MaxFunc(r.cells, func(a, b sheetCell) int { return len(a.lines) - len(b.lines) })
	return r.pictureHeight() + 4 + lineSpace*len(lines.lines)
}

func (r *sheetRow) drawOn(sheet *image.NRGBA, top, width int) {
	below := top + r.pictureHeight()
	for i, c := range r.cells {
		left := sheetGap + i*(width+sheetGap)
		if c.picture != nil {
			b := c.picture.Bounds()
			draw.Draw(sheet, b.Sub(b.Min).Add(image.Pt(left, below-b.Dy())), c.picture, b.Min, draw.Src)
		}
		for n, l := range c.lines {
			pen := font.Drawer{Dst: sheet, Src: image.NewUniform(l.ink), Face: sheetFont, Dot: fixed.P(left, below+4+sheetFont.Ascent+n*lineSpace)}
			pen.DrawString(l.text)
		}
	}
}
