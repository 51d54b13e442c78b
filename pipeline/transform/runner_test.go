package transform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/budget"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/internal/plain"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
	"github.com/feedwater-io/feedwater/pipeline/resize"
)

func newRunner(t testing.TB, c Chain, o Options) *Runner {
	t.Helper()
	r, err := NewRunner(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tells checks what replay tells of sample 3 of epoch 0, of w×h pixels, with seed 17: these numbers pin the recipe.
func tells(t *testing.T, plan string, w, h int, want string) {
	t.Helper()
	draws, err := newRunner(t, parse(t, plan), Options{Seed: 17}).Draws(w, h, order.Sample{Index: 3})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(draws); string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// randomPlan is any sequence of ops, small sizes, all argument forms.
func randomPlan(r *rand.Rand) string {
	side := func() int { return 1 + r.IntN(40) }
	ops := make([]string, r.IntN(6))
	for i := range ops {
		switch r.IntN(8) {
		case 0:
			ops[i] = fmt.Sprintf(`{"op":"RandomResizedCrop","size":[%d,%d],"scale":[0.1,1]}`, side(), side())
		case 1:
			ops[i] = fmt.Sprintf(`{"op":"Resize","size":%d}`, side())
		case 2:
			ops[i] = fmt.Sprintf(`{"op":"Resize","size":[%d,%d]}`, side(), side())
		case 3:
			n := side()
			ops[i] = fmt.Sprintf(`{"op":"Resize","size":%d,"max_size":%d}`, n, n+side())
		case 4, 5:
			ops[i] = fmt.Sprintf(`{"op":"CenterCrop","size":[%d,%d]}`, side(), side())
		case 6:
			ops[i] = `{"op":"RandomHorizontalFlip"}`
		case 7:
			ops[i] = `{"op":"RandomVerticalFlip","p":0.7}`
		}
	}
	return strings.Join(ops, ",")
}

// applyOps runs a chain op by op on whole pictures, from its canonical arguments and what was drawn.
func applyOps(t *testing.T, p plain.Picture, infos []Info, draws []Draw, ref resize.Reference) plain.Picture {
	t.Helper()
	for i, d := range draws {
		var a struct {
			Size                     any
			Max                      int `json:"max_size"`
			Top, Left, Height, Width int
		}
		for _, raw := range []json.RawMessage{infos[i].Arguments, d.Parameters} {
			if err := json.Unmarshal(raw, &a); err != nil {
				t.Fatal(err)
			}
		}
		sizes, _ := a.Size.([]any)
		switch {
		case !d.Applied:
		case d.Op == "RandomHorizontalFlip":
			p = p.Flip(true, false)
		case d.Op == "RandomVerticalFlip":
			p = p.Flip(false, true)
		case d.Op == "RandomResizedCrop":
			p = p.Crop(makeRectangle(a.Left, a.Top, a.Width, a.Height))
			p = p.Resize(int(sizes[1].(float64)), int(sizes[0].(float64)), ref == resize.Pillow13)
		case d.Op == "CenterCrop":
			p = plainCenterCrop(p, int(sizes[0].(float64)), int(sizes[1].(float64)))
		case d.Op == "Resize" && sizes != nil:
			p = p.Resize(int(sizes[1].(float64)), int(sizes[0].(float64)), ref == resize.Pillow13)
		case d.Op == "Resize":
			p = plainResizeShort(p, int(a.Size.(float64)), a.Max, ref)
		}
	}
	return p
}

// plainCenterCrop pads, then crops, as torchvision's function does.
func plainCenterCrop(p plain.Picture, h, w int) plain.Picture {
	if left, top := max(w-p.W, 0)/2, max(h-p.H, 0)/2; w > p.W || h > p.H {
		p = p.Crop(makeRectangle(-left, -top, max(w, p.W), max(h, p.H)))
	}
	half := func(x int) int { // round half to even of x/2
		if x%4 == 3 {
			return x/2 + 1
		}
		return x / 2
	}
	return p.Crop(makeRectangle(half(p.W-w), half(p.H-h), w, h))
}

func plainResizeShort(p plain.Picture, short, most int, ref resize.Reference) plain.Picture {
	long := short * max(p.W, p.H) / min(p.W, p.H)
	if most > 0 && long > most {
		short, long = most*short/long, most
	}
	if p.W <= p.H {
		return p.Resize(short, long, ref == resize.Pillow13)
	}
	return p.Resize(long, short, ref == resize.Pillow13)
}

func TestFoldedChainsEqualOpByOp(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	views := map[int]int{}
	refused := 0
	for k := range 700 {
		c := parseOrNot(t, randomPlan(r))
		p := plain.RandomPicture(r, 1+r.IntN(60), 1+r.IntN(60))
		ref := []resize.Reference{resize.Pillow13, resize.Pillow12}[k%2]
		s := order.Sample{Epoch: r.Uint32(), Index: r.Uint32(), Repeat: r.Uint32()}
		for _, level := range kernel.Levels() {
			rn := newRunner(t, c, Options{Seed: 5, Reference: ref, Level: level})
			draws, err := rn.Draws(p.W, p.H, s)
			if err != nil {
				refused++
				continue
			}
			want := applyOps(t, p, c.Infos(), draws, ref)
			if got := runChain(t, rn, p, s, r); !got.Equal(want) {
				plan, _ := c.MarshalJSON()
				t.Fatalf("%s, %s: %s of %d×%d differs: %+v", level, ref, plan, p.W, p.H, draws)
			}
			views[len(rn.program.passes)]++
		}
	}
	if views[1] < 300 || views[2] < 80 || views[3] < 20 || refused > 50 {
		t.Errorf("chains of as many views: %v; %d refused", views, refused)
	}
}

// parseOrNot takes the plans that randomPlan makes; now and then a size is impossible, and the empty chain serves.
func parseOrNot(t *testing.T, plan string) Chain {
	t.Helper()
	c, err := tryParse(t, plan)
	if err != nil && !strings.Contains(err.Error(), "makes pictures of") {
		t.Fatal(err)
	}
	return c
}

func runChain(t *testing.T, rn *Runner, p plain.Picture, s order.Sample, r *rand.Rand) plain.Picture {
	t.Helper()
	w, h, err := rn.Begin(p.W, p.H, s)
	if err != nil {
		t.Fatal(err)
	}
	if fh, fw, fixed := rn.chain.OutputSize(); fixed && (fh != h || fw != w) {
		t.Fatalf("%d×%d, but OutputSize says %d×%d", w, h, fw, fh)
	}
	stride := 3*w + r.IntN(20)
	whole := bytes.Repeat([]byte{0xa5}, h*stride+64)
	end := 32 + (h-1)*stride + 3*w
	if err := rn.Run(&plain.Feed{Picture: p, Random: r, Chunk: 1 + r.IntN(30)}, whole[32:end:end], stride); err != nil {
		t.Fatal(err)
	}
	q := plain.NewPicture(w, h)
	for y := range h {
		copy(q.Pix[3*y*w:], whole[32+y*stride:][:3*w])
		copy(whole[32+y*stride:], bytes.Repeat([]byte{0xa5}, 3*w))
	}
	if bytes.Count(whole, []byte{0xa5}) != len(whole) {
		t.Fatal("wrote outside of the rows")
	}
	return q
}

// The usual plans are one pass, and decode no more than they need.
func TestUsualPlansAreOneView(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	p := plain.RandomPicture(r, 250, 200)
	for plan, all := range map[string]bool{
		`{"op":"RandomResizedCrop","size":32,"scale":[0.08,0.3]},{"op":"Resize","size":32},{"op":"RandomHorizontalFlip"}`:   false,
		`{"op":"RandomHorizontalFlip"},{"op":"RandomVerticalFlip"},{"op":"RandomResizedCrop","size":32,"scale":[0.08,0.3]}`: false,
		`{"op":"Resize","size":64},{"op":"CenterCrop","size":40}`:                                                           false,
		`{"op":"CenterCrop","size":[300,260]},{"op":"RandomVerticalFlip"}`:                                                  true,
		`{"op":"CenterCrop","size":100},{"op":"Resize","size":50},{"op":"RandomHorizontalFlip"}`:                            false,
	} {
		rn := newRunner(t, parse(t, plan), Options{})
		for i := range uint32(20) {
			if _, _, err := rn.Begin(p.W, p.H, order.Sample{Index: i}); err != nil {
				t.Fatal(err)
			}
			f := &plain.Feed{Picture: p, Random: r, Chunk: 16}
			w, h := rn.program.currentSize().X, rn.program.currentSize().Y
			if err := rn.Run(f, make([]byte, 3*w*h), 3*w); err != nil {
				t.Fatal(err)
			}
			if n := len(rn.program.passes); n != 1 {
				t.Fatalf("%s: %d views", plan, n)
			}
			if got := f.Asked.Dx()*f.Asked.Dy() == p.W*p.H; got != all {
				t.Fatalf("%s: asks for %v of %d×%d", plan, f.Asked, p.W, p.H)
			}
		}
	}
}

// Each op of a class has its own draws, and they do not move when ops of other classes come or go.
func TestDrawsDoNotMove(t *testing.T) {
	s := order.Sample{Epoch: 3, Index: 99}
	draw := func(plan string, i int) string {
		d, err := newRunner(t, parse(t, plan), Options{Seed: 4}).Draws(500, 375, s)
		if err != nil {
			t.Fatal(err)
		}
		return string(d[i].Parameters) + fmt.Sprint(d[i].Applied)
	}
	crop, flip := `{"op":"RandomResizedCrop","size":[375,500]}`, `{"op":"RandomHorizontalFlip"}`
	alone := draw(crop, 0)
	if got := draw(flip+","+crop, 1); got != alone {
		t.Errorf("a flip before moves %s to %s", alone, got)
	}
	if got := draw(crop+","+crop, 0); got != alone {
		t.Errorf("a second crop behind moves %s to %s", alone, got)
	}
	if got := draw(crop+","+crop, 1); got == alone {
		t.Errorf("both crops draw %s", got)
	}
}

func TestDrawsAreReportedInTorchvisionsWords(t *testing.T) {
	rn := newRunner(t, parse(t, `{"op":"RandomResizedCrop","size":224},{"op":"RandomHorizontalFlip","p":0},{"op":"Resize","size":9},{"op":"RandomVerticalFlip","p":1}`), Options{Seed: 17})
	draws, err := rn.Draws(500, 375, order.Sample{Index: 1})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(draws)
	// The numbers pin the recipe: seed 17, sample 1 of epoch 0.
	want := `[{"op":"RandomResizedCrop","applied":true,"parameters":{"top":18,"left":23,"height":216,"width":175}},` +
		`{"op":"RandomHorizontalFlip","applied":false,"parameters":{}},{"op":"Resize","applied":true,"parameters":{}},` +
		`{"op":"RandomVerticalFlip","applied":true,"parameters":{}}]`
	if string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := rn.Run(nil, nil, 0); err == nil {
		t.Error("Run after Draws runs something")
	}
}

func TestImpossibleSizesAreTheSamplesFault(t *testing.T) {
	for plan, want := range map[string]string{
		`{"op":"Resize","size":256}`:                                                                                                  "Resize: a picture of 1×60000 pixels would become one of 256×15360000, but a side has at most 65500",
		`{"op":"Resize","size":null,"max_size":300}`:                                                                                  "Resize: a picture of 1×60000 pixels would become one of 0×300, which is empty",
		`{"op":"RandomHorizontalFlip"},{"op":"CenterCrop","size":[40000,4500]}`:                                                       "CenterCrop: a picture of 1×60000 pixels would become one of 4500×40000, but the limit is 178956970 pixels",
		`{"op":"RandomResizedCrop","size":8,"scale":[0,0],"ratio":[1e5,1e6]}`:                                                         "RandomResizedCrop: a picture of 1×60000 pixels would become one of 1×0, which is empty",
		`{"op":"CenterCrop","size":[40000,4000]},{"op":"Resize","size":[40000,40000]}`:                                                "Resize: a picture of 4000×40000 pixels would be held between two passes, but the limit for that is 67108864 pixels",
		`{"op":"Resize","size":300},{"op":"CenterCrop","size":224}`:                                                                   "Resize: a picture of 1×60000 pixels would become one of 300×18000000, but a side has at most 16777216, whatever is cut out of it",
		`{"op":"Resize","size":2},{"op":"ColorJitter","brightness":0.5},{"op":"CenterCrop","size":224}`:                               "Resize: a picture of 1×60000 pixels would become one of 2×120000, but a side has at most 65500",
		`{"op":"Resize","size":256},{"op":"Resize","size":200},{"op":"CenterCrop","size":224}`:                                        "Resize: a picture of 1×60000 pixels would become one of 256×15360000, but a side has at most 65500",
		`{"op":"RandomApply","p":1,"transforms":[{"op":"Resize","size":2}]},{"op":"RandomInvert","p":1},{"op":"CenterCrop","size":9}`: "Resize: a picture of 1×60000 pixels would become one of 2×120000, but a side has at most 65500",
	} {
		rn := newRunner(t, parse(t, plan), Options{})
		_, _, err := rn.Begin(1, 60000, order.Sample{})
		var o *OpError
		if !errors.As(err, &o) || err.Error() != want || !errors.Is(err, o.Cause) {
			t.Errorf("%s\n says %v\n want %s", plan, err, want)
		}
		if err := rn.Run(nil, nil, 0); err == nil {
			t.Errorf("%s: runs nevertheless", plan)
		}
	}
}

// Of a picture that is larger than any is made only what is cut out of it takes memory, and it is what is cut out of
// the whole.
func TestOnlyTheCropIsMade(t *testing.T) {
	picture := testPicture(2, 600)
	for name, c := range map[string]struct{ whole, cut string }{
		"bilinear":   {`{"op":"Resize","size":100}`, `{"op":"Resize","size":100},{"op":"CenterCrop","size":80}`},
		"bicubic":    {`{"op":"Resize","size":100,"interpolation":"bicubic"}`, `{"op":"Resize","size":100,"interpolation":"bicubic"},{"op":"CenterCrop","size":80}`},
		"nearest":    {`{"op":"Resize","size":100,"interpolation":"nearest"}`, `{"op":"Resize","size":100,"interpolation":"nearest"},{"op":"CenterCrop","size":80}`},
		"flipped":    {`{"op":"Resize","size":100},{"op":"RandomVerticalFlip","p":1}`, `{"op":"Resize","size":100},{"op":"RandomVerticalFlip","p":1},{"op":"CenterCrop","size":80}`},
		"with a rim": {`{"op":"Resize","size":100},{"op":"Pad","padding":3}`, `{"op":"Resize","size":100},{"op":"Pad","padding":3},{"op":"CenterCrop","size":80}`},
	} {
		whole, w, h := made(t, c.whole, picture)
		cut, _, _ := made(t, c.cut, picture)
		for y := range 80 {
			at := (int(math.RoundToEven(float64(h-80)/2))+y)*w + int(math.RoundToEven(float64(w-80)/2))
			if !bytes.Equal(cut[3*80*y:][:3*80], whole[3*at:][:3*80]) {
				t.Errorf("%s: row %d differs", name, y)
				break
			}
		}
	}
	long := testPicture(1, 65000)
	budget.Hold(t, 8<<20, func() { made(t, `{"op":"Resize","size":256},{"op":"CenterCrop","size":224}`, long) })
	// Between two views it is held as a whole, as far as that goes.
	made(t, `{"op":"Resize","size":256},{"op":"Resize","size":20},{"op":"CenterCrop","size":16}`, testPicture(1, 300))
}

// made is what a plan makes of a picture, and its size.
func made(t *testing.T, plan string, p *pixel.Image) (pix []byte, w, h int) {
	t.Helper()
	rn := newRunner(t, parse(t, plan), Options{})
	w, h, err := rn.Begin(p.W, p.H, order.Sample{})
	if err != nil {
		t.Fatal(err)
	}
	pix = make([]byte, 3*w*h)
	if err := rn.Run((*picture)(p), pix, 3*w); err != nil {
		t.Fatal(err)
	}
	return pix, w, h
}

func testPicture(w, h int) *pixel.Image {
	p := &pixel.Image{}
	p.Reset(w, h)
	for i := range p.Pix {
		p.Pix[i] = byte(i*i>>3 + i)
	}
	return p
}

func TestRunRefusesBadMemoryAndBadSources(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	rn := newRunner(t, parse(t, `{"op":"CenterCrop","size":[4,5]}`), Options{})
	for name, run := range map[string]func() error{
		"short":  func() error { return rn.Run(nil, make([]byte, 3*4*5-1), 15) },
		"narrow": func() error { return rn.Run(nil, make([]byte, 100), 14) },
		"rows": func() error {
			return rn.Run(&plain.Feed{Picture: plain.RandomPicture(r, 9, 9), Random: r, Chunk: 3, Missed: 1}, make([]byte, 60), 15)
		},
		"source": func() error { return rn.Run(plain.Broken{}, make([]byte, 60), 15) },
	} {
		if _, _, err := rn.Begin(9, 9, order.Sample{}); err != nil {
			t.Fatal(err)
		}
		if err := run(); err == nil {
			t.Errorf("%s: no error", name)
		} else if name == "source" && !errors.Is(err, plain.ErrBroken) {
			t.Errorf("the source's error is lost: %v", err)
		}
	}
}

// What only a huge picture needs is given back, and the result is let go of.
func TestRunKeepsNoHugePicture(t *testing.T) {
	rn := newRunner(t, parse(t, `{"op":"Resize","size":[1,1900]}`), Options{})
	for h, again := range map[int]bool{6200: true, 600: false} {
		var m pixel.Image
		m.Reset(1900, h)
		dst, begun := make([]byte, 3*m.W), uint64(0)
		for range 2 {
			begun = allocated()
			if _, _, err := rn.Begin(m.W, m.H, order.Sample{}); err != nil {
				t.Fatal(err)
			}
			if err := rn.Run((*picture)(&m), dst, 3*m.W); err != nil {
				t.Fatal(err)
			}
		}
		if n := allocated() - begun; (n > uint64(3*m.W*h)) != again {
			t.Errorf("%d bytes are allocated for a second picture of %d rows", n, h)
		}
		if rn.result.Pix != nil {
			t.Error("the result is kept")
		}
	}
}

// allocated is how many bytes were allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Reference: "pillow-11"}, {Level: "avx1024"}} {
		if _, err := NewRunner(Chain{}, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	t.Setenv(kernel.EnvLevel, "nothing")
	if _, err := NewRunner(Chain{}, Options{}); err == nil {
		t.Error("the environment's level is not looked at")
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	for _, plan := range []string{
		`{"op":"RandomResizedCrop","size":32},{"op":"RandomHorizontalFlip"},{"op":"RandomVerticalFlip"}`,
		`{"op":"Resize","size":40},{"op":"CenterCrop","size":50},{"op":"Resize","size":[20,30]},{"op":"RandomVerticalFlip"}`,
	} {
		allocatesNothing(t, plan)
	}
}

// allocatesNothing runs a chain on samples that differ, pictures of 100×80 pixels, and counts once it has seen them
// all.
func allocatesNothing(t *testing.T, plan string) {
	t.Helper()
	rn := newRunner(t, parse(t, plan), Options{})
	m := plain.RandomImage(rand.New(rand.NewPCG(1, 1)), 100, 80)
	var dst []byte
	next := uint32(0)
	once := func() {
		next = (next + 1) % 50
		w, h, err := rn.Begin(m.W, m.H, order.Sample{Index: next})
		if need := 3 * w * h; err == nil && need > len(dst) {
			dst = make([]byte, need)
		}
		if err == nil {
			err = rn.Run((*picture)(m), dst, 3*w)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		once()
	}
	if n := testing.AllocsPerRun(100, once); n != 0 {
		t.Errorf("%s: %v allocations per sample", plan, n)
	}
}
