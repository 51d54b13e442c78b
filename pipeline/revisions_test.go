package pipeline

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/imageformat"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

func TestOpsOfPlans(t *testing.T) {
	for text, want := range map[string][]string{
		`{"transforms": []}`: nil,
		`{"transforms": [{"op": "Resize", "size": 9}, {"op": "RandomApply", "transforms": [{"op": "RandomChoice", "transforms": [
			{"op": "JPEG", "quality": 9}, {"op": "RandomInvert"}]}]}, {"op": "CenterCrop", "size": 8}]}`: {"CenterCrop", "JPEG", "RandomApply", "RandomChoice", "RandomInvert", "Resize"},
		`{"views": [[{"op": "CenterCrop", "size": 8}], [{"op": "CenterCrop", "size": 8}, {"op": "RandomInvert"}]]}`: {"CenterCrop", "RandomInvert"},
	} {
		plan, err := ParsePlan([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Ops(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, not %v", text, got, want)
		}
	}
}

// Every format that a decoder takes has a codec in the table, and no other.
func TestFormatsAreUnits(t *testing.T) {
	var units []string
	for unit := range revision.Build() {
		if len(unit) > 6 && unit[:6] == "codec/" {
			units = append(units, unit[6:])
		}
	}
	slices.Sort(units)
	if !slices.Equal(units, imageformat.Names()) {
		t.Errorf("the table has %v, decoders %v", units, imageformat.Names())
	}
}

// A file of a format whose codec is of another revision ends the want whatever would become of it: a picture, a verdict, a stand-in, a mask.
func TestPinnedCodecs(t *testing.T) {
	images, masks := greyFolders(t)
	png := revision.Codec("png")
	for what, plan := range map[string]string{
		"masks": maskPlan,
		"skip":  `{"transforms": [{"op": "CenterCrop", "size": 8}], "on_error": "skip"}`,
	} {
		for _, refuse := range []bool{true, false} {
			var j *Job
			var err error
			if what == "masks" {
				j, err = masked(t, jpegsOf(t, images), masks, plan, Options{Workers: 1}) // whose masks alone are PNG files
			} else {
				j, err = damagedJob(t, images, plan)
			}
			if err != nil {
				t.Fatal(err)
			}
			pins := CodecUnits(revision.Build())
			if refuse {
				pins[png] += 4
			}
			j.Pin(pins)
			_, r := fetch(t, j, batch.Name{Count: 6})
			var e *RevisionError
			if errors.As(r.Err, &e) != refuse || j.Refuses() != refuse || !refuse && r.Err != nil {
				t.Errorf("%s, refused %v: %v", what, refuse, r.Err)
			}
			if refuse && (e.Unit != png || e.Pinned != e.Found+4 || e.Key == "") {
				t.Errorf("%s: %+v", what, e)
			}
			_, err = j.Replay(context.Background(), batch.Name{Count: 6}, math.MaxInt, nil)
			if errors.As(err, &e) != refuse {
				t.Errorf("%s, refused %v: replay: %v", what, refuse, err)
			}
			if _, err := j.Replay(context.Background(), batch.Name{Count: 6}, 0, nil); err != nil {
				t.Errorf("%s: a replay without pixels: %v", what, err)
			}
		}
	}
}

// A picture beyond the limits ends the want where what becomes of those is of another revision, whether it would be cut to one that is made or refused; others are made.
func TestPinnedOversize(t *testing.T) {
	images, _ := greyFolders(t)
	pins := CodecUnits(revision.Build())
	pins[revision.Oversize]++
	for what, c := range map[string]struct {
		transforms, limits string
		refused            bool
	}{
		"within":          {`{"op": "Resize", "size": [60, 60]}, {"op": "CenterCrop", "size": 8}`, `{"pixels": 3600}`, false},
		"cut":             {`{"op": "Resize", "size": [60, 60]}, {"op": "CenterCrop", "size": 8}`, `{"pixels": 3599}`, true},
		"a verdict":       {`{"op": "Resize", "size": 60}`, `{"pixels": 3599}`, true},
		"before an op":    {`{"op": "Resize", "size": 60}, {"op": "RandomInvert", "p": 1}, {"op": "CenterCrop", "size": 8}`, `{"pixels": 3599}`, true},
		"within others":   {`{"op": "RandomApply", "p": 1, "transforms": [{"op": "Resize", "size": 60}]}, {"op": "CenterCrop", "size": 8}`, `{"pixels": 3599}`, true},
		"what is refused": {`{"op": "RandomCrop", "size": 1000}`, `{"pixels": 1000000}`, false},
	} {
		j, err := damagedJob(t, images, `{"transforms": [`+c.transforms+`], "limits": `+c.limits+`, "on_error": "skip"}`)
		if err != nil {
			t.Fatal(err)
		}
		j.Pin(pins)
		_, r := fetch(t, j, batch.Name{Count: 6})
		var e *RevisionError
		if errors.As(r.Err, &e) != c.refused || !c.refused && r.Err != nil || !j.Refuses() {
			t.Errorf("%s: %v", what, r.Err)
		}
		if c.refused && (e.Unit != revision.Oversize || e.Pinned != e.Found+1 || e.Key == "") {
			t.Errorf("%s: %+v", what, e)
		}
	}
}

// jpegsOf has the pictures of a folder as JPEG files.
func jpegsOf(t *testing.T, images string) string {
	t.Helper()
	dir := t.TempDir()
	names, _ := filepath.Glob(filepath.Join(images, "*.png"))
	for _, name := range names {
		encoded, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := image.Decode(bytes.NewReader(encoded))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, m, nil); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, filepath.Base(name[:len(name)-4])+".jpg"), b.Bytes())
	}
	return dir
}

// damagedJob is a plan for a copy of a folder whose first file is cut.
func damagedJob(t *testing.T, images, text string) (*Job, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(images)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "a.png"), 20); err != nil {
		t.Fatal(err)
	}
	plan, err := ParsePlan([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := dataset.Open(context.Background(), dir, dataset.Options{CacheDir: t.TempDir(), Flat: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	p, err := Open(Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p.Prepare(plan, s)
}

// An index that another decoder made is not found.
func TestIndexOfAnotherDecoder(t *testing.T) {
	var file bytes.Buffer
	if err := jpeg.Encode(&file, image.NewGray(image.Rect(0, 0, 64, 64)), nil); err != nil {
		t.Fatal(err)
	}
	x := IndexOptions{Dir: t.TempDir(), CopyBytes: 1 << 30}.withDefaults()
	other := revision.Build()
	other["kernel/jpeg"]++
	for i, c := range []struct {
		decoder revision.Set
		found   bool
	}{{revision.Build(), false}, {other, false}, {revision.Build(), true}, {other, true}} {
		copies, err := x.openCopies(c.decoder)
		if err != nil {
			t.Fatal(err)
		}
		s, err := x.openRecords("fingerprint", 1, c.decoder, copies)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := s.Find(0, file.Bytes(), nil)
		copied, _ := copies.Cache.Find(0, 1, nil)
		if len(data) > 0 != c.found || len(copied) > 0 != c.found {
			t.Errorf("%d: found %v, and %v", i, data, copied)
		}
		s.PutAll(t.Context(), 0, file.Bytes(), []byte{1}, recording{small: true})
		copies.PutAll(t.Context(), 0, 1, []byte{1})
		closeBoth(s)
	}
}

// Machines that compute what the build was committed with have one name, whatever the self-test of the build is.
func TestNameOfNumerics(t *testing.T) {
	digest, err := measureNumerics(kernel.Scalar, "")
	if err != nil {
		t.Fatal(err)
	}
	if nameNumerics(digest) != Exact || nameNumerics("other") != "other" {
		t.Errorf("%s is %s", digest, nameNumerics(digest))
	}
	if _, known := revision.OfNumerics(Exact); !known {
		t.Error("states that pin it are of no known build")
	}
}
