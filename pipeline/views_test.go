package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// viewChains begin with all that a view can begin with: a crop and a resize, a crop alone, a resize of all, padding around all, an effect.
var viewChains = []string{
	`[{"op": "RandomResizedCrop", "size": [64, 48]}, {"op": "RandomHorizontalFlip"}]`,
	`[{"op": "RandomResizedCrop", "size": [64, 48]}, {"op": "RandomHorizontalFlip"}, {"op": "RandomErasing", "p": 0.7}]`,
	`[{"op": "RandomHorizontalFlip"}, {"op": "RandomCrop", "size": [16, 16], "pad_if_needed": true}, {"op": "ColorJitter", "brightness": 0.4}]`,
	`[{"op": "Resize", "size": 40}, {"op": "CenterCrop", "size": [24, 24]}]`,
	`[{"op": "RandomVerticalFlip"}, {"op": "Pad", "padding": 7}, {"op": "RandomCrop", "size": [20, 20], "pad_if_needed": true}]`,
	`[{"op": "RandomInvert", "p": 1}, {"op": "RandomResizedCrop", "size": [24, 24], "scale": [0.05, 0.2]}]`,
}

func viewsPlan(more string) string {
	return `{"seed": 17, "shuffle": true, "views": [` + strings.Join(viewChains, ", ") + `]` + more + `}`
}

// alone makes one view of a file as if there were no other.
func alone(t *testing.T, chain string, view int, file []byte, s order.Sample) []byte {
	t.Helper()
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(chain), &raw); err != nil {
		t.Fatal(err)
	}
	c, err := transform.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	level, _ := kernel.Best()
	r, err := transform.NewRunner(c, transform.Options{Seed: 17, Path: fmt.Sprintf("Views/%d/", view), Level: level})
	if err != nil {
		t.Fatal(err)
	}
	d := codec.NewDecoder(level)
	w, h, err := d.Parse(file, codec.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if w, h, err = r.Begin(w, h, s); err != nil {
		t.Fatal(err)
	}
	pix := make([]byte, 3*w*h)
	if err := r.Run(d, pix, 3*w); err != nil {
		t.Fatal(err)
	}
	return pix
}

// Each view has the pixels that it would have alone, from files of all kinds, with an index and without.
func TestViewsAreThoseOfEachAlone(t *testing.T) {
	dir := folder(t)
	for _, index := range []*IndexOptions{nil, {Dir: t.TempDir(), Interval: 2}} {
		j := open(t, dir, viewsPlan(""), Options{Workers: 2, Index: index})
		for epoch := range uint32(3) {
			b, r := fetch(t, j, batch.Name{Epoch: epoch, Count: 21})
			if r.Err != nil || crc32.Checksum(b[:r.Bytes], castagnoli) != r.CRC32C {
				t.Fatalf("%v, checksum %08x", r.Err, r.CRC32C)
			}
			samples, err := j.Replay(context.Background(), batch.Name{Epoch: epoch, Count: 21}, math.MaxInt, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range samples {
				for k, chain := range viewChains {
					want := alone(t, chain, k, pictures()[s.Key], order.Sample{Epoch: epoch, Index: uint32(s.Index), Repeat: s.Repeat})
					at, n := batch.OffsetOf(r.Fields, fmt.Sprintf("image.%d", k)), len(want)
					if !bytes.Equal(b[at+i*n:at+(i+1)*n], want) {
						t.Fatalf("epoch %d, %s, view %d: another picture than alone", epoch, s.Key, k)
					}
					if v := s.Views[k]; !bytes.Equal(v.Image, want) || 3*v.Height*v.Width != n || len(v.Draws) < 2 {
						t.Fatalf("epoch %d, %s, view %d: replay differs", epoch, s.Key, k)
					}
				}
			}
		}
	}
}

// short is a source that ends before its last row, and says nothing.
type short struct{}

func (short) Decode(r image.Rectangle, sink pixel.Sink) error {
	sink.Rows(make([]byte, 3*r.Dx()*r.Dy()), 3*r.Dx(), r.Dy()-1)
	return nil
}

// Views are not made of rows that did not come.
func TestViewsOfAShortPicture(t *testing.T) {
	var s sharedPicture
	if err := s.readRegion(short{}, image.Rect(3, 4, 8, 14)); err == nil || !strings.Contains(err.Error(), "9 of 10 rows") {
		t.Errorf("a picture of 9 rows for 10: %v", err)
	}
}

// Views of the same transforms draw by themselves, and a view draws the same whatever the others are.
func TestViewsDrawIndependently(t *testing.T) {
	dir := folder(t)
	two := open(t, dir, `{"views": [`+viewChains[0]+`, `+viewChains[0]+`]}`, Options{})
	other := open(t, dir, `{"views": [`+viewChains[3]+`, `+viewChains[0]+`]}`, Options{})
	a, r := fetch(t, two, batch.Name{Count: 21})
	b, s := fetch(t, other, batch.Name{Count: 21})
	n := 21 * 64 * 48 * 3
	first, second, same := batch.OffsetOf(r.Fields, "image.0"), batch.OffsetOf(r.Fields, "image.1"), batch.OffsetOf(s.Fields, "image.1")
	if bytes.Equal(a[first:first+n], a[second:second+n]) {
		t.Error("two views of one transform are the same")
	}
	if !bytes.Equal(a[second:second+n], b[same:same+n]) {
		t.Error("the second view depends on the first")
	}
}

// Where images are handed over, those of all views are, and the rest lies where it belongs; a skipped sample is zeros in all.
func TestViewsHandedOver(t *testing.T) {
	dir := folder(t)
	write(t, dir+"/class_1/broken.jpg", []byte("no picture"))
	j := open(t, dir, viewsPlan(`, "on_error": "skip"`), Options{Workers: 2})
	want, r := fetch(t, j, batch.Name{Count: 22})
	if r.Err != nil || len(r.Errors) != 1 {
		t.Fatalf("%v, %v", r.Err, r.Errors)
	}
	got := make([]byte, len(want))
	var mu sync.Mutex
	done := make(chan Result, 1)
	w := &Want{Name: batch.Name{Count: 22}, Request: batch.Request{Dst: got, Image: func(view, i int, pix []byte) {
		mu.Lock()
		defer mu.Unlock()
		copy(got[batch.OffsetOf(r.Fields, fmt.Sprintf("image.%d", view))+i*len(pix):], pix)
	}}, Done: func(r Result) { done <- r }}
	if err := j.Submit(w); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.Err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%v, or another batch", r.Err)
	}
	for k := range j.pictures {
		at := j.pictures[k].bytes
		hole := want[batch.OffsetOf(r.Fields, j.pictures[k].field)+r.Errors[0].Offset*at:][:at]
		if !bytes.Equal(hole, make([]byte, at)) {
			t.Errorf("view %d of a broken sample is not zeros", k)
		}
	}
}

func TestViewPlans(t *testing.T) {
	for text, want := range map[string]string{
		`{"views": [[{"op": "Resize", "size": 9}]]}`:                                                      "views[0]: the results differ in size",
		`{"views": [[{"op": "CenterCrop", "size": 9}], [{"op": "CenterCrop", "size": 0}]]}`:               "views[1][0].size",
		`{"views": [[{"op": "CenterCrop", "size": 9}]], "transforms": [{"op": "CenterCrop", "size": 9}]}`: "views: stand in place of transforms",
		`{"views": [[{"op": "CenterCrop", "size": 99}]], "limits": {"pixels": 99}}`:                       "over limits.pixels",
		`{"views": [` + strings.Repeat(`[], `, 16) + `[]]}`:                                               "at most 16",
	} {
		if _, err := ParsePlan([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	one, err := ParsePlan([]byte(viewsPlan("")))
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParsePlan(one.Canonical())
	if err != nil || again.Hash() != one.Hash() || len(again.Views) != len(viewChains) {
		t.Errorf("%v: the canonical form is another plan", err)
	}
	without, _ := ParsePlan([]byte(`{}`))
	if strings.Contains(string(without.Canonical()), "views") || without.PixelHash() == one.PixelHash() {
		t.Error("views do not make a difference, or one where there are none")
	}
}
