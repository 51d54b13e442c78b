package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

const maskedViews = `{"seed": 5, "views": [
	[{"op": "RandomHorizontalFlip"}, {"op": "RandomResizedCrop", "size": [24, 32], "interpolation": "nearest", "dialect": "tensor"}],
	[{"op": "RandomRotation", "degrees": [-40, 40], "dialect": "tensor", "fill": 9, "mask_fill": 9}, {"op": "RandomCrop", "size": [9, 11]}]],
	"masks": {}, "fields": ["image", "mask"]}`

// Each view's mask moves as that view does, by the draws that it has without masks; replay has the same.
func TestMasksOfViews(t *testing.T) {
	images, masks := greyFolders(t)
	j, err := masked(t, images, masks, maskedViews, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := masked(t, images, masks, strings.Replace(maskedViews, `"masks": {}, "fields": ["image", "mask"]`, `"masks": {}, "fields": ["image", "mask", "label"]`, 1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	name := batch.Name{Epoch: 1, Count: 6}
	b, r := fetch(t, j, name)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	other, q := fetch(t, plain, name)
	samples, err := j.Replay(t.Context(), name, math.MaxInt, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, bytesOf := range []int{24 * 32, 9 * 11} {
		image, mask := fmt.Sprintf("image.%d", k), fmt.Sprintf("mask.%d", k)
		pixels, numbers := b[batch.OffsetOf(r.Fields, image):], b[batch.OffsetOf(r.Fields, mask):]
		if !bytes.Equal(numbers[:6*bytesOf], other[batch.OffsetOf(q.Fields, mask):][:6*bytesOf]) {
			t.Errorf("%s is another one with labels", mask)
		}
		for i := range 6 * bytesOf {
			if pixels[3*i] != numbers[i] {
				t.Fatalf("view %d: pixel %d is %d, its mask %d", k, i, pixels[3*i], numbers[i])
			}
		}
		for i := range samples {
			v := &samples[i].Views[k]
			if !bytes.Equal(v.Mask, numbers[i*bytesOf:][:bytesOf]) || !bytes.Equal(v.Image, pixels[3*i*bytesOf:][:3*bytesOf]) {
				t.Errorf("view %d of sample %d: replay differs", k, i)
			}
		}
	}
}

// cityFolders are a picture and masks of it in a folder each, called as Cityscapes calls its own; the pixels of the mask are those of pick.
func cityFolders(t *testing.T, pick func(x, y int) color.RGBA) (images, masks string) {
	t.Helper()
	images, masks = t.TempDir(), t.TempDir()
	size := image.Rect(0, 0, 16, 8)
	numbers, colours := image.NewGray(size), image.NewRGBA(size)
	for y := range 8 {
		for x := range 16 {
			numbers.SetGray(x, y, color.Gray{uint8(x)})
			colours.SetRGBA(x, y, pick(x, y))
		}
	}
	for file, m := range map[string]image.Image{
		filepath.Join(images, "aachen", "a_1_leftImg8bit.png"): colours,
		filepath.Join(masks, "aachen", "a_1_labelIds.png"):     numbers,
		filepath.Join(masks, "aachen", "a_1_color.png"):        colours,
	} {
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, file, b.Bytes())
	}
	return images, masks
}

func stripes(x, y int) color.RGBA {
	if x < 8 {
		return color.RGBA{128, 64, 128, 255}
	}
	return color.RGBA{0, uint8(y), 70, 255}
}

func cityPlan(members string) string {
	return `{"fields": ["image", "mask"], "transforms": [{"op": "Pad", "padding": [1, 0, 0, 0], "fill": 200}, {"op": "CenterCrop", "size": [8, 17]}],
		"masks": {"picture_suffix": "_leftImg8bit", "suffix": ` + members + `}}`
}

// Names of masks may go on otherwise than those of pictures, and their pixels may be others' numbers, or colours; what is put around is a number as it is.
func TestNumbersOfMasks(t *testing.T) {
	images, masks := cityFolders(t, stripes)
	for members, want := range map[string]func(x, y int) int{
		`"_labelIds"`: func(x, _ int) int { return x },
		`"_labelIds", "numbers": [[3, 0], [7, 200]], "others": 255`: func(x, _ int) int {
			return map[int]int{3: 0, 7: 200}[x] + map[bool]int{true: 255}[x != 3 && x != 7]
		},
		`"_color", "palette": [[128, 64, 128, 7], [0, 2, 70, 9]], "others": 4`: func(x, y int) int {
			return map[bool]int{true: 7, false: map[bool]int{true: 9, false: 4}[y == 2]}[x < 8]
		},
	} {
		j, err := masked(t, images, masks, cityPlan(members), Options{})
		if err != nil {
			t.Fatalf("%s: %v", members, err)
		}
		b, r := fetch(t, j, batch.Name{Count: 1})
		if r.Err != nil {
			t.Fatalf("%s: %v", members, r.Err)
		}
		numbers := b[batch.OffsetOf(r.Fields, "mask"):]
		for y := range 8 {
			if numbers[17*y] != 200 {
				t.Errorf("%s: %d is put around", members, numbers[17*y])
			}
			for x := range 16 {
				if got := int(numbers[17*y+1+x]); got != want(x, y) {
					t.Errorf("%s: (%d, %d) is %d, not %d", members, x, y, got, want(x, y))
				}
			}
		}
	}
}

// What no number stands for is a verdict on the sample, and so is a file that loses colours.
func TestNumbersThatAreMissing(t *testing.T) {
	images, masks := cityFolders(t, stripes)
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, 16, 8)), nil); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(masks, "aachen", "a_1_lossy.jpg"), b.Bytes())
	for members, want := range map[string]string{
		`"_labelIds", "numbers": [[0, 0]]`:         "has the number 1, which no other stands for",
		`"_color", "palette": [[128, 64, 128, 7]]`: "has the colour (0, 0, 70), which is not in the palette",
		`"_lossy", "palette": [[128, 64, 128, 7]]`: "a mask of colours is a PNG",
		`"_color"`: "palette or 8-bit grey",
	} {
		j, err := masked(t, images, masks, cityPlan(members), Options{})
		if err != nil {
			t.Fatalf("%s: %v", members, err)
		}
		var verdict *SampleError
		if _, r := fetch(t, j, batch.Name{Count: 1}); !errors.As(r.Err, &verdict) || !strings.Contains(verdict.Error(), want) {
			t.Errorf("%s: %v", members, r.Err)
		}
	}
	for members, want := range map[string]string{`"_gtFine"`: "a_1_gtFine.png", `"_color", "picture_suffix": "_right"`: `does not end with "_right"`} {
		if _, err := masked(t, images, masks, cityPlan(members), Options{}); !errors.Is(err, dataset.ErrLayout) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", members, err)
		}
	}
}

// They are part of what names a batch, and of nothing else: plans without them have the hashes that they had.
func TestNumbersNameBatches(t *testing.T) {
	seen := map[string]string{}
	for _, members := range []string{
		`{}`, `{"suffix": "_a"}`, `{"picture_suffix": "_a"}`, `{"numbers": [[1, 2]]}`, `{"numbers": [[1, 2]], "others": 0}`, `{"palette": [[1, 2, 3, 4]]}`,
	} {
		p, err := ParsePlan([]byte(`{"masks": ` + members + `, "fields": ["image", "mask"], "transforms": [{"op": "CenterCrop", "size": 8}]}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, hash := range []string{p.Hash(), p.PixelHash()} {
			if other, there := seen[hash]; there {
				t.Errorf("%s and %s have one hash", other, members)
			}
			seen[hash] = members
		}
	}
}

func TestPlansOfNumbers(t *testing.T) {
	for members, want := range map[string]string{
		`"palette": [[1, 2, 3, 4]], "numbers": [[1, 2]]`: "and not both",
		`"others": 3`:                                         "needs a palette or numbers",
		`"numbers": [[1, 2]], "others": 256`:                  "masks.others",
		`"numbers": [[1, 2, 3]]`:                              "masks.numbers[0]: is no row of [from, to]",
		`"numbers": [[1, 2], [1, 3]]`:                         "masks.numbers[1]: [1] is there twice",
		`"palette": [[1, 2, 3]]`:                              "masks.palette[0]: is no row",
		`"palette": [[1, 2, 300, 4]]`:                         "300 is no number",
		`"palette": [[1, 2, 3, 4], [1, 2, 3, 5]]`:             "[1 2 3] is there twice",
		`"palette": [` + strings.Repeat(`[], `, 4096) + `[]]`: "4097 colours",
		`"suffix": 3`:                                         "masks.suffix",
	} {
		_, err := ParsePlan([]byte(`{"masks": {` + members + `}, "fields": ["image", "mask"], "transforms": [{"op": "CenterCrop", "size": 8}]}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", members, err)
		}
	}
}
