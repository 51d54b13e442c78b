package sheet

import (
	"image"
	"image/color"
	"strings"
	"testing"

	"github.com/disintegration/imaging"
)

func TestBrokenLines(t *testing.T) {
	for text, want := range map[string]string{
		"short":                    "short",
		"RandomResizedCrop top 1":  "RandomResi|  zedCrop|  top 1",
		"one two three four":       "one two|  three|  four",
		"ten letter":               "ten letter",
		"abcdefghijklmnopqrstuvwx": "abcdefghij|  klmnopqr|  stuvwx",
	} {
		if got := strings.Join(breakText(text, func(line string) bool { return len(line) <= 10 }), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestPolicyText(t *testing.T) {
	for parameters, want := range map[string]string{
		`{"ops": [{"name": "Equalize", "magnitude": 0}, {"name": "ShearX", "magnitude": 0.09000001}]}`: "Equalize · ShearX 0.09",
		`{"top": 3, "left": 4}`: "", `{"ops": []}`: "", `[]`: "",
	} {
		if got := policyText([]byte(parameters)); got != want {
			t.Errorf("%s: %q, want %q", parameters, got, want)
		}
	}
}

// What a picture was cut from is framed on the original, in the colour of its column; parts that lie outside are not.
func TestCropsAreFramed(t *testing.T) {
	original := imaging.New(50, 25, paper)
	r := Row{cells: []cell{
		{picture: original, size: image.Pt(100, 50)},
		{crop: image.Rect(20, 10, 60, 40)}, {crop: image.Rect(90, 0, 110, 20)}, {},
	}}
	r.drawCrops()
	for at, want := range map[image.Point]color.NRGBA{
		{X: 10, Y: 5}: frameOf(1), {X: 29, Y: 19}: frameOf(1), {X: 20, Y: 12}: paper, {X: 9, Y: 5}: paper, {X: 30, Y: 10}: paper, {X: 46, Y: 1}: paper,
	} {
		if got := color.NRGBAModel.Convert(r.cells[0].picture.At(at.X, at.Y)); got != want {
			t.Errorf("%v is %v, want %v", at, got, want)
		}
	}
}
