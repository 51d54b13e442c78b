package transform

import (
	"errors"
	"fmt"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

func TestErasingChoosesARectangleInside(t *testing.T) {
	rn := newRunner(t, parse(t, `{"op":"RandomErasing","p":1,"scale":[0,1],"ratio":[0.1,10]}`), Options{})
	none := 0
	for i := range uint32(5000) {
		w, h := 1+int(i%70), 1+int(i*7%50)
		if _, _, err := rn.Begin(w, h, order.Sample{Index: i}); err != nil {
			t.Fatal(err)
		}
		b := rn.Boxes()[0]
		if b == (Box{}) {
			none++
		}
		if min(b[0], b[1], b[2], b[3]) < 0 || b[0]+b[2] > h || b[1]+b[3] > w {
			t.Fatalf("%v of %d×%d", b, w, h)
		}
	}
	if none == 0 || none > 2500 {
		t.Errorf("%d of 5000 have none", none)
	}
}

// The numbers pin the recipe: seed 17, sample 1 of epoch 0.
func TestErasingIsReportedInTorchvisionsWords(t *testing.T) {
	c := parse(t, `{"op":"CenterCrop","size":100},{"op":"RandomErasing","p":1,"value":7},{"op":"RandomErasing","p":0},{"op":"RandomErasing","p":1,"scale":[1,1],"ratio":[1,1]}`)
	rn := newRunner(t, c, Options{Seed: 17})
	draws, err := rn.Draws(500, 375, order.Sample{Index: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, d := range draws[1:] {
		got += fmt.Sprint(d.Applied) + string(d.Parameters)
	}
	want := `true{"i":40,"j":0,"h":59,"w":43,"v":[7]}false{}true{"i":0,"j":0,"h":100,"w":100,"v":null}`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if n := c.Boxes(); n != 3 || fmt.Sprint(rn.Boxes()) != "[[40 0 59 43 0 0] [0 0 0 0 0 0] [0 0 0 0 0 0]]" {
		t.Errorf("%d boxes, %v", n, rn.Boxes())
	}
}

func TestErasingIsLast(t *testing.T) {
	if info := parse(t, `{"op":"RandomErasing"}`).Infos()[0]; info.Place != "last hop" || info.Dialect != "tensor" {
		t.Errorf("%+v", info)
	}
	for plan, want := range map[string]string{
		`{"op":"RandomErasing"},{"op":"RandomHorizontalFlip"}`: `transforms[1]: RandomHorizontalFlip: must stand before RandomErasing, which is done last`,
		`{"op":"RandomErasing","value":[1,2]}`:                 `transforms[0]: RandomErasing: value: must be a number, a list of three, or "random", got [1,2]; nearest: 0`,
		`{"op":"RandomErasing","value":"noise"}`:               `transforms[0]: RandomErasing: value: must be a number from -3.4028234663852886e+38 to 3.4028234663852886e+38, got "noise"; nearest: 0`,
		`{"op":"RandomErasing","scale":[0,2]}`:                 `transforms[0]: RandomErasing: scale: must be a number from 0 to 1, got 2; nearest: 1`,
	} {
		_, err := tryParse(t, plan)
		var p *PlanError
		if !errors.As(err, &p) || err.Error() != want {
			t.Errorf("%s\n says %v\n want %s", plan, err, want)
		}
	}
}
