package pipeline

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// masked makes pictures that are their own masks, grey ones and colours that are their index, and opens a plan on them.
func masked(t *testing.T, images, masks, plan string, o Options) (*Job, error) {
	t.Helper()
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	parsed, err := ParsePlan([]byte(plan))
	if err != nil {
		t.Fatal(err)
	}
	var both [2]*dataset.Snapshot
	for i, dir := range []string{images, masks} {
		if both[i], err = dataset.Open(context.Background(), dir, dataset.Options{CacheDir: t.TempDir(), Flat: true}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { both[i].Close() })
	}
	return p.PrepareMasked(parsed, both[0], both[1])
}

func greyFolders(t *testing.T) (images, masks string) {
	t.Helper()
	images, masks = t.TempDir(), t.TempDir()
	colours := make(color.Palette, 256)
	for i := range colours {
		colours[i] = color.RGBA{byte(255 - i), byte(i * 3), 7, 255}
	}
	for n := range 6 {
		size := image.Rect(0, 0, 40+7*n, 60-5*n)
		picture, mask := image.NewGray(size), image.NewPaletted(size, colours)
		for i := range picture.Pix {
			picture.Pix[i] = byte(i*i>>3 + n)
			mask.Pix[i] = picture.Pix[i]
		}
		for dir, m := range map[string]image.Image{images: picture, masks: mask} {
			var b bytes.Buffer
			if err := png.Encode(&b, m); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, string(rune('a'+n))+".png"), b.Bytes())
		}
	}
	return images, masks
}

const maskPlan = `{"seed": 5, "transforms": [{"op": "RandomHorizontalFlip"}, {"op": "RandomAffine", "degrees": 40, "dialect": "tensor", "fill": 9, "mask_fill": 200},
	{"op": "RandomInvert", "p": 0}, {"op": "RandomResizedCrop", "size": [24, 32], "interpolation": "nearest", "dialect": "tensor"}],
	"masks": {}, "fields": ["image", "mask"]}`

// A picture that is its own mask, moved by nearest, stays its own mask, but for what is put around; replay and handing over say the same.
func TestMasksMoveAsPicturesDo(t *testing.T) {
	images, masks := greyFolders(t)
	j, err := masked(t, images, masks, maskPlan, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	filled := 0
	for epoch := range uint32(5) {
		name := batch.Name{Epoch: epoch, Count: 6}
		b, r := fetch(t, j, name)
		if r.Err != nil || crc32.Checksum(b[:r.Bytes], castagnoli) != r.CRC32C {
			t.Fatalf("%v, checksum %08x", r.Err, r.CRC32C)
		}
		pixels, numbers := b[batch.OffsetOf(r.Fields, "image"):], b[batch.OffsetOf(r.Fields, "mask"):]
		for i := range 6 * 24 * 32 {
			switch {
			case pixels[3*i] == numbers[i]:
			case pixels[3*i] == 9 && numbers[i] == 200:
				filled++
			default:
				t.Fatalf("epoch %d: pixel %d is %d, its mask %d", epoch, i, pixels[3*i], numbers[i])
			}
		}
		samples, err := j.Replay(context.Background(), name, math.MaxInt, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range samples {
			if !bytes.Equal(s.Mask, numbers[i*24*32:(i+1)*24*32]) || !bytes.Equal(s.Image, pixels[3*i*24*32:3*(i+1)*24*32]) {
				t.Fatalf("sample %d: replay differs", i)
			}
		}
		got := make([]byte, len(b))
		done := make(chan Result, 1)
		w := &Want{Name: name, Request: batch.Request{Dst: got, Image: func(_, i int, pix []byte) { copy(got[batch.OffsetOf(r.Fields, "image")+i*len(pix):], pix) }}, Done: func(r Result) { done <- r }}
		if err := j.Submit(w); err != nil {
			t.Fatal(err)
		}
		if r := <-done; r.Err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%v, or another batch where images are handed over", r.Err)
		}
	}
	if filled == 0 {
		t.Error("nothing was put around masks")
	}
}

func TestMasksThatAreMissing(t *testing.T) {
	images, masks := greyFolders(t)
	write(t, filepath.Join(images, "f.more.jpg"), []byte("x"))
	_, err := masked(t, images, masks, maskPlan, Options{})
	if !errors.Is(err, dataset.ErrLayout) || !strings.Contains(err.Error(), filepath.Join(images, "f.more.jpg")) ||
		!strings.Contains(err.Error(), filepath.Join(masks, "f.more.png")) {
		t.Error(err)
	}
}

// Beside a PNG other files of its name are no masks; two PNGs are one too many, and so are two others.
func TestMasksOfOneName(t *testing.T) {
	for _, v := range []struct{ beside, want string }{{"a.jpg", ""}, {"a.webp", ""}, {"a.PNG", "a.PNG and "}} {
		images, masks := greyFolders(t)
		write(t, filepath.Join(masks, v.beside), []byte("x"))
		j, err := masked(t, images, masks, maskPlan, Options{})
		if v.want != "" {
			if !errors.Is(err, dataset.ErrLayout) || !strings.Contains(err.Error(), v.want) || !strings.Contains(err.Error(), filepath.Join(masks, "a.png")) {
				t.Errorf("%s: %v", v.beside, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, r := fetch(t, j, batch.Name{Count: 6}); r.Err != nil {
			t.Errorf("%s: %v", v.beside, r.Err)
		}
	}
}

func TestMaskPlans(t *testing.T) {
	crop := `"transforms": [{"op": "CenterCrop", "size": 9}]`
	for text, want := range map[string]string{
		`{"fields": ["image", "mask"], ` + crop + `}`: "masks: are wanted",
		`{"masks": {}, ` + crop + `}`:                 "masks go with pictures",
		`{"masks": {}, "fields": ["image", "mask"], "views": [[{"op": "RandAugment"}, {"op": "CenterCrop", "size": 9}]]}`:          "views[0][0]: RandAugment: does not work on masks",
		`{"masks": {}, "fields": ["image", "mask"], "apply_exif": true, ` + crop + `}`:                                             "apply_exif",
		`{"masks": {}, "fields": ["image", "mask"]}`:                                                                               "differ in size",
		`{"masks": {"fingerprint": "12"}, "fields": ["image", "mask"], ` + crop + `}`:                                              "masks.fingerprint",
		`{"masks": {}, "fields": ["image", "mask"], "transforms": [{"op": "FiveCrop", "size": 9}]}`:                                "does not work on masks",
		`{"masks": {}, "fields": ["image", "mask"], "transforms": [{"op": "RandomApply", "transforms": [{"op": "RandAugment"}]}]}`: "does not work on masks",
		`{"transforms": [{"op": "CenterCrop", "size": 9, "mask_fill": 3}]}`:                                                        "no such argument",
		`{"transforms": [{"op": "Pad", "padding": 9, "mask_fill": 300}]}`:                                                          "from 0 to 255",
	} {
		if _, err := ParsePlan([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	p, err := ParsePlan([]byte(maskPlan))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(p.Canonical()), `"mask_fill":200`) {
		t.Errorf("%s: mask_fill is lost", p.Canonical())
	}
	moved, _ := ParsePlan([]byte(strings.Replace(maskPlan, `"masks": {}`, `"masks": {"root": "r", "path": "p"}`, 1)))
	if moved.Hash() != p.Hash() || moved.PixelHash() != p.PixelHash() {
		t.Error("the place of masks changes hashes")
	}
}

// A mask of another size than its picture is that sample's error, whichever side differs, and so is one that lies the other way.
func TestMasksOfOtherSizes(t *testing.T) {
	images, masks := t.TempDir(), t.TempDir()
	sizes := map[string]image.Point{"a": {20, 30}, "b": {21, 30}, "c": {20, 31}, "d": {30, 20}, "e": {10, 60}}
	for name, size := range sizes {
		for dir, m := range map[string]image.Image{images: image.NewGray(image.Rect(0, 0, 20, 30)), masks: image.NewGray(image.Rectangle{Max: size})} {
			var b bytes.Buffer
			if err := png.Encode(&b, m); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, name+".png"), b.Bytes())
		}
	}
	j, err := masked(t, images, masks, `{"masks": {}, "fields": ["image", "mask"], "transforms": [{"op": "CenterCrop", "size": 8}]}`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	samples, err := j.Replay(t.Context(), batch.Name{List: []batch.Ref{{Index: 0}, {Index: 1}, {Index: 2}, {Index: 3}, {Index: 4}}}, math.MaxInt, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range samples {
		switch {
		case i == 0 && s.Err != nil:
			t.Errorf("%s: %v", s.Key, s.Err)
		case i > 0 && (s.Err == nil || !strings.Contains(s.Err.Error(), "its picture 20×30")):
			t.Errorf("%s: %v", s.Key, s.Err)
		}
	}
}
