package transform

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/plain"
	"github.com/feedwater-io/feedwater/pipeline/order"
)

func TestCornersAreTheOpsOfTheirOwn(t *testing.T) {
	const w, h = 9, 7
	src := plain.RandomImage(rand.New(rand.NewPCG(1, 1)), w, h)
	for plan, flip := range map[string]func(x, y int) (int, int){
		`{"op":"FiveCrop","size":[4,5]}`:                     nil,
		`{"op":"TenCrop","size":[4,5]}`:                      func(x, y int) (int, int) { return w - 1 - x, y },
		`{"op":"TenCrop","size":[4,5],"vertical_flip":true}`: func(x, y int) (int, int) { return x, h - 1 - y },
	} {
		crops := [][2]int{{0, 0}, {w - 5, 0}, {0, h - 4}, {w - 5, h - 4}, {2, 2}}
		var want []byte
		for pass := range 2 {
			if pass == 1 && flip == nil {
				break
			}
			for _, c := range crops {
				for y := range 4 {
					for x := range 5 {
						u, v := c[0]+x, c[1]+y
						if pass == 1 {
							u, v = flip(u, v)
						}
						want = append(want, src.Pix[v*src.Stride+3*u:][:3]...)
					}
				}
			}
		}
		rn := newRunner(t, parse(t, plan), Options{})
		if _, _, err := rn.Begin(w, h, order.Sample{}); err != nil {
			t.Fatal(err)
		}
		have := make([]byte, len(want))
		if err := rn.Run((*picture)(src), have, 3*5); err != nil {
			t.Fatal(err)
		}
		if string(have) != string(want) {
			t.Errorf("%s: %v, want %v", plan, have, want)
		}
	}
}

func TestCornersStandLast(t *testing.T) {
	for _, plan := range []string{
		`{"op":"FiveCrop","size":4},{"op":"RandomHorizontalFlip"}`,
		`{"op":"TenCrop","size":4},{"op":"RandomErasing"}`,
		`{"op":"RandomApply","transforms":[{"op":"FiveCrop","size":4}]}`,
	} {
		if _, err := tryParse(t, plan); err == nil || !strings.Contains(err.Error(), "several pictures of one") {
			t.Errorf("%s: %v", plan, err)
		}
	}
	rn := newRunner(t, parse(t, `{"op":"FiveCrop","size":[4,5]}`), Options{})
	if _, _, err := rn.Begin(4, 4, order.Sample{}); err == nil {
		t.Error("crops of 5 fit 4 pixels")
	}
}

func TestCornersAllocateNothing(t *testing.T) {
	allocatesNothing(t, `{"op":"Resize","size":40},{"op":"TenCrop","size":32}`)
}
