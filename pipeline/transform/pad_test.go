package transform

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/internal/plain"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/resize"
)

// plainPad is the rectangle r of a picture that goes on as mode says, found by walking from pixel to pixel.
func plainPad(p plain.Picture, r image.Rectangle, mode string, fill [3]byte) plain.Picture {
	q := plain.NewPicture(r.Dx(), r.Dy())
	for y := range q.H {
		for x := range q.W {
			at := image.Pt(r.Min.X+x, r.Min.Y+y)
			if mode != "constant" {
				at = image.Pt(walk(at.X, p.W, mode), walk(at.Y, p.H, mode))
			}
			if at.In(image.Rect(0, 0, p.W, p.H)) {
				copy(q.At(x, y), p.At(at.X, at.Y))
			} else {
				copy(q.At(x, y), fill[:])
			}
		}
	}
	return q
}

// walk goes from 0 to i and turns round at the ends of a side of n.
func walk(i, n int, mode string) int {
	at, step, left := 0, 1, i
	if i < 0 {
		left, step = -i, -1
	}
	for ; left > 0; left-- {
		next := at + step
		if 0 <= next && next < n {
			at = next
			continue
		}
		switch {
		case mode == "edge" || n == 1:
			return at
		case mode == "reflect":
			step = -step
			at += step
		default: // symmetric: the end comes twice
			step = -step
		}
	}
	return at
}

func randomPadding(r *rand.Rand) string {
	text := fmt.Sprintf(`"padding_mode":%q`, []string{"constant", "edge", "reflect", "symmetric"}[r.IntN(4)])
	switch r.IntN(3) {
	case 0:
		text += fmt.Sprintf(`,"fill":%d`, r.IntN(256))
	case 1:
		text += fmt.Sprintf(`,"fill":[%d,%d,3.5]`, r.IntN(256), r.IntN(3))
	}
	return text
}

// paddingPlan is any sequence of ops that cut, pad or move.
func paddingPlan(r *rand.Rand) string {
	side := func() int { return 1 + r.IntN(40) }
	ops := make([]string, 1+r.IntN(4))
	for i := range ops {
		switch r.IntN(7) {
		case 0:
			ops[i] = fmt.Sprintf(`{"op":"RandomCrop","size":[%d,%d],"pad_if_needed":true,%s}`, side(), side(), randomPadding(r))
		case 1:
			ops[i] = fmt.Sprintf(`{"op":"RandomCrop","size":%d,"padding":[%d,%d],"pad_if_needed":true,%s}`, side(), side(), side(), randomPadding(r))
		case 2, 3:
			ops[i] = fmt.Sprintf(`{"op":"Pad","padding":[%d,%d,%d,%d],%s}`, side(), side(), side(), r.IntN(2), randomPadding(r))
		case 4:
			ops[i] = fmt.Sprintf(`{"op":"RandomZoomOut","side_range":[1,2],"p":0.8,"fill":%d}`, r.IntN(3))
		case 5:
			ops[i] = fmt.Sprintf(`{"op":"CenterCrop","size":[%d,%d]},{"op":"RandomHorizontalFlip"}`, side(), side())
		case 6:
			ops[i] = fmt.Sprintf(`{"op":"Resize","size":[%d,%d]},{"op":"RandomVerticalFlip"}`, side(), side())
		}
	}
	return strings.Join(ops, ",")
}

// applyPadding runs a chain op by op, from its canonical arguments and what was drawn.
func applyPadding(t *testing.T, p plain.Picture, infos []Info, draws []Draw) plain.Picture {
	t.Helper()
	for i, d := range draws {
		var a struct {
			Padding                  *[4]int
			Fill                     [3]byte
			Mode                     string `json:"padding_mode"`
			Top, Left, Height, Width int
		}
		for _, raw := range []json.RawMessage{infos[i].Arguments, d.Parameters} {
			if err := json.Unmarshal(raw, &a); err != nil {
				t.Fatal(err)
			}
		}
		b := [4]int{}
		if a.Padding != nil {
			b = *a.Padding
		}
		around := image.Rect(-b[0], -b[1], p.W+b[2], p.H+b[3])
		switch {
		case !d.Applied:
		case d.Op == "Pad":
			p = plainPad(p, around, a.Mode, a.Fill)
		case d.Op == "RandomZoomOut":
			p = plainPad(p, around, "constant", a.Fill)
		case d.Op == "RandomCrop":
			p = plainPad(p, around, a.Mode, a.Fill).Crop(makeRectangle(a.Left, a.Top, a.Width, a.Height))
		default:
			p = applyOps(t, p, infos[i:i+1], draws[i:i+1], resize.Pillow13)
		}
	}
	return p
}

func TestPaddedChainsEqualOpByOp(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 1))
	passes := map[int]int{}
	for range 500 {
		c := parse(t, paddingPlan(r))
		p := plain.RandomPicture(r, 1+r.IntN(50), 1+r.IntN(50))
		s := order.Sample{Epoch: r.Uint32(), Index: r.Uint32(), Repeat: r.Uint32()}
		for _, level := range kernel.Levels() {
			rn := newRunner(t, c, Options{Seed: 5, Level: level})
			draws, err := rn.Draws(p.W, p.H, s)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := runChain(t, rn, p, s, r), applyPadding(t, p, c.Infos(), draws); !got.Equal(want) {
				plan, _ := c.MarshalJSON()
				t.Fatalf("%s: %s of %d×%d differs: %+v", level, plan, p.W, p.H, draws)
			}
			passes[len(rn.program.passes)]++
		}
	}
	if n := len(kernel.Levels()); passes[1] < 100*n || passes[2] < 50*n || passes[3] < 25*n {
		t.Errorf("chains of as many passes: %v", passes)
	}
}

// A crop with constant padding, the usual one, is part of the decoding pass and decodes no more than it needs.
func TestPaddedCropsAreOneView(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 1))
	p := plain.RandomPicture(r, 90, 80)
	rn := newRunner(t, parse(t, `{"op":"RandomCrop","size":32,"padding":4,"fill":7},{"op":"RandomHorizontalFlip"}`), Options{})
	for i := range uint32(50) {
		if _, _, err := rn.Begin(p.W, p.H, order.Sample{Index: i}); err != nil {
			t.Fatal(err)
		}
		f := &plain.Feed{Picture: p, Random: r, Chunk: 16}
		if err := rn.Run(f, make([]byte, 3*32*32), 3*32); err != nil {
			t.Fatal(err)
		}
		if len(rn.program.passes) != 1 || f.Asked.Dx() > 32 || f.Asked.Dy() > 32 {
			t.Fatalf("%d passes; asks for %v", len(rn.program.passes), f.Asked)
		}
	}
}

func TestCanonicalFormOfSizes(t *testing.T) {
	for plan, want := range map[string]string{
		`{"op":"Pad","padding":3}`: `{"op":"Pad","padding":[3,3,3,3],"fill":[0,0,0],"padding_mode":"constant"}`,
		`{"op":"Pad","padding":[3,4],"fill":[1.9,2,3],"dialect":"tensor"}`:                              `{"op":"Pad","padding":[3,4,3,4],"fill":[1,2,3],"padding_mode":"constant"}`,
		`{"op":"Pad","padding":[1,2,3,4],"fill":9,"padding_mode":"edge"}`:                               `{"op":"Pad","padding":[1,2,3,4],"fill":[0,0,0],"padding_mode":"edge"}`,
		`{"op":"RandomCrop","size":8}`:                                                                  `{"op":"RandomCrop","size":[8,8],"padding":null,"pad_if_needed":false,"fill":[0,0,0],"padding_mode":"constant"}`,
		`{"op":"RandomCrop","size":8,"padding":[4],"pad_if_needed":true}`:                               `{"op":"RandomCrop","size":[8,8],"padding":[4,4,4,4],"pad_if_needed":true,"fill":[0,0,0],"padding_mode":"constant"}`,
		`{"op":"RandomZoomOut"}`:                                                                        `{"op":"RandomZoomOut","fill":[0,0,0],"side_range":[1,4],"p":0.5}`,
		`{"op":"RandomResize","min_size":8,"max_size":9}`:                                               `{"op":"RandomResize","min_size":8,"max_size":9,"interpolation":"bilinear"}`,
		`{"op":"RandomShortestSize","min_size":8}`:                                                      `{"op":"RandomShortestSize","min_size":[8],"max_size":null,"interpolation":"bilinear"}`,
		`{"op":"ScaleJitter","target_size":[8,9],"interpolation":"box"}`:                                `{"op":"ScaleJitter","target_size":[8,9],"scale_range":[0.1,2],"interpolation":"box"}`,
		`{"op":"Resize","size":8,"dialect":"pil"}`:                                                      `{"op":"Resize","size":8,"interpolation":"bilinear","max_size":null}`,
		`{"op":"Resize","size":8,"dialect":"tensor","antialias":true}`:                                  `{"op":"Resize","size":8,"dialect":"tensor","interpolation":"bilinear","max_size":null}`,
		`{"op":"Resize","size":8,"dialect":"tensor","antialias":null}`:                                  `{"op":"Resize","size":8,"dialect":"tensor","interpolation":"bilinear","antialias":false,"max_size":null}`,
		`{"op":"Resize","size":8,"dialect":"tensor","antialias":false,"interpolation":"nearest-exact"}`: `{"op":"Resize","size":8,"dialect":"tensor","interpolation":"nearest-exact","max_size":null}`,
		`{"op":"RandomHorizontalFlip","dialect":"tensor"}`:                                              `{"op":"RandomHorizontalFlip","p":0.5}`,
	} {
		got, err := json.Marshal(parse(t, plan))
		if err != nil || string(got) != "["+want+"]" {
			t.Errorf("%s\n gives %s, %v\n  want %s", plan, got, err, want)
		}
		if again, _ := json.Marshal(parse(t, string(got[1:len(got)-1]))); string(again) != string(got) {
			t.Errorf("%s is not stable: %s", got, again)
		}
	}
	info := parse(t, `{"op":"RandomResizedCrop","size":8,"dialect":"tensor"}`).Infos()[0]
	if info.Dialect != "tensor" {
		t.Errorf("the dialect is %s", info.Dialect)
	}
}

func TestPlanErrorsOfSizes(t *testing.T) {
	for plan, want := range map[string]string{
		`{"op":"Pad"}`:                                                                            `Pad: padding: is missing; nearest: 4`,
		`{"op":"Pad","padding":[1,2,3]}`:                                                          `Pad: padding: must be a number, or a list of one, two or four, got [1,2,3]; nearest: [4,4,4,4]`,
		`{"op":"Pad","padding":-1}`:                                                               `Pad: padding: must be a whole number from 0 to 65500, got -1; nearest: 0`,
		`{"op":"Pad","padding":1,"fill":256}`:                                                     `Pad: fill: must be a number from 0 to 255, got 256; nearest: 255`,
		`{"op":"Pad","padding":1,"fill":[1,2]}`:                                                   `Pad: fill: must be a number, or a list of three, got [1,2]; nearest: [0,0,0]`,
		`{"op":"Pad","padding":1,"padding_mode":"mirror"}`:                                        `Pad: padding_mode: no such name, got "mirror"; nearest: "edge"`,
		`{"op":"RandomCrop","size":8,"pad_if_needed":1}`:                                          `RandomCrop: pad_if_needed: must be true or false, got 1; nearest: false`,
		`{"op":"RandomZoomOut","side_range":[0.5,2]}`:                                             `RandomZoomOut: side_range: must be a number from 1 to 65500, got 0.5; nearest: 1`,
		`{"op":"RandomResize","min_size":9,"max_size":9}`:                                         `RandomResize: max_size: must be greater than min_size, 9, got 9; nearest: 10`,
		`{"op":"RandomResize","min_size":9}`:                                                      `RandomResize: max_size: is missing; nearest: 480`,
		`{"op":"RandomShortestSize","min_size":[]}`:                                               `RandomShortestSize: min_size: must have 1 to 1000 numbers, got 0; nearest: 256`,
		`{"op":"Resize","size":8,"dialect":"torch"}`:                                              `Resize: dialect: no such name, got "torch"; nearest: "pil"`,
		`{"op":"Resize","size":8,"interpolation":"box","dialect":"tensor"}`:                       `Resize: interpolation: tensors know no "box"; nearest: "bilinear"`,
		`{"op":"Resize","size":8,"interpolation":"lanczos","dialect":"tensor","antialias":false}`: `Resize: antialias: lanczos is antialiased always; nearest: true`,
		`{"op":"Resize","size":8,"dialect":"tensor","antialias":"no"}`:                            `Resize: antialias: must be true or false, got "no"; nearest: true`,
	} {
		_, err := tryParse(t, plan)
		var p *PlanError
		if !errors.As(err, &p) || err.Error() != "transforms[0]: "+want {
			t.Errorf("%s\n says %v\n want %s", plan, err, want)
		}
	}
}

func TestDrawsOfSizesAreReportedInTorchvisionsWords(t *testing.T) {
	rn := newRunner(t, parse(t, `{"op":"RandomZoomOut","p":1},{"op":"RandomResize","min_size":100,"max_size":200},{"op":"RandomCrop","size":90,"padding":[1,2,3,4]},`+
		`{"op":"RandomShortestSize","min_size":[50,60],"max_size":70},{"op":"ScaleJitter","target_size":[80,90]}`), Options{Seed: 17})
	draws, err := rn.Draws(500, 375, order.Sample{Index: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, d := range draws {
		got += string(d.Parameters)
	}
	// The numbers pin the recipe: seed 17, sample 1 of epoch 0.
	want := `{"padding":[554,291,631,598]}{"size":[192]}` +
		`{"needs_crop":true,"top":101,"left":25,"height":90,"width":90,"needs_pad":true,"padding":[1,2,3,4]}{"size":[50,50]}{"size":[77,77]}`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTooSmallPicturesAreTheSamplesFault(t *testing.T) {
	rn := newRunner(t, parse(t, `{"op":"RandomCrop","size":[8,20],"padding":4}`), Options{})
	_, _, err := rn.Begin(11, 9, order.Sample{})
	var o *OpError
	if !errors.As(err, &o) || err.Error() != "RandomCrop: a crop of 20×8 pixels is larger than the picture, 19×17 with its padding" {
		t.Errorf("says %v", err)
	}
}

func TestSizesAllocateNothing(t *testing.T) {
	for _, plan := range []string{
		`{"op":"RandomCrop","size":32,"padding":4,"pad_if_needed":true,"fill":9},{"op":"Pad","padding":3,"fill":1}`,
		`{"op":"RandomCrop","size":90,"padding":20,"padding_mode":"reflect"},{"op":"Pad","padding":[1,2,3,4],"padding_mode":"symmetric"}`,
		`{"op":"RandomZoomOut","side_range":[1,1.2]},{"op":"RandomShortestSize","min_size":[30,40]},{"op":"CenterCrop","size":50}`,
		`{"op":"RandomResizedCrop","size":32,"interpolation":"lanczos"},{"op":"RandomResize","min_size":8,"max_size":40,"interpolation":"nearest"}`,
		`{"op":"RandomResizedCrop","size":32,"dialect":"tensor"},{"op":"Resize","size":50,"dialect":"tensor","interpolation":"bicubic","antialias":false}`,
		`{"op":"ScaleJitter","target_size":[40,40],"interpolation":"hamming"}`,
		`{"op":"CenterCrop","size":60},{"op":"RandomErasing"},{"op":"RandomErasing","value":[1,2,3]}`,
	} {
		allocatesNothing(t, plan)
	}
}

// BenchmarkPadding runs ops on a picture of 500×375 pixels in memory.
func BenchmarkPadding(b *testing.B) {
	m := plain.RandomImage(rand.New(rand.NewPCG(1, 1)), 500, 375)
	for _, plan := range []string{
		`{"op":"RandomCrop","size":224,"padding":28}`,
		`{"op":"RandomCrop","size":224,"padding":28,"padding_mode":"reflect"}`,
		`{"op":"Pad","padding":40,"fill":[1,2,3]}`,
		`{"op":"Pad","padding":40,"padding_mode":"reflect"}`,
		`{"op":"RandomZoomOut","p":1}`,
	} {
		b.Run(plan, func(b *testing.B) {
			rn, dst := newRunner(b, parseFor(b, plan), Options{}), make([]byte, 3*2000*1500)
			for i := range b.N {
				w, _, err := rn.Begin(m.W, m.H, order.Sample{Index: uint32(i)})
				if err == nil {
					err = rn.Run((*picture)(m), dst, 3*w)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func parseFor(b *testing.B, plan string) Chain {
	b.Helper()
	c, err := Parse([]json.RawMessage{json.RawMessage(plan)})
	if err != nil {
		b.Fatal(err)
	}
	return c
}
