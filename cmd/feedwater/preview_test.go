package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/sheet"
	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
)

// TestPreview looks at the sheet: it has a row for each sample, the damaged one with a text, and the pictures are where they belong.
func TestPreview(t *testing.T) {
	dir, out := pictures(t, 3), filepath.Join(t.TempDir(), "sheet.png")
	plan := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(plan, []byte(`{"transforms": [{"op": "Resize", "size": [40, 20]}, {"op": "RandomHorizontalFlip", "p": 1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := call("preview", dir, "--plan", plan, "-o", out, "--samples", "3", "--epochs", "2", "--width", "64")
	if code != exitOK || !strings.Contains(errs, "3 samples") {
		t.Fatalf("code %d: %s", code, errs)
	}
	drawn := decodePNG(t, out)
	if got, want := drawn.Bounds().Dx(), sheet.Gap+3*(64+sheet.Gap); got != want {
		t.Errorf("%d pixels wide, want %d", got, want)
	}
	for x, want := range map[int]bool{sheet.Gap - 1: false, sheet.Gap: true, 2*sheet.Gap + 64: true, 2*sheet.Gap + 64 + 20: false, drawn.Bounds().Dx() - 1: false} {
		top := sheet.Gap + sheet.TitleHeight
		if got := inked(drawn, x, top, top+40); got != want {
			t.Errorf("column %d of pixels: something is there: %v, want %v", x, got, want)
		}
	}
}

// TestPreviewTakesColumns: pictures and labels come from the columns that the plan's source names.
func TestPreviewTakesColumns(t *testing.T) {
	dir := shardOf(t, "left", jpegtest.Encode(jpegtest.Photograph(1, 0, 60, 40), jpegtest.Options{}))
	for source, says := range map[string]string{
		`{"image": "left"}`:                     "",
		`{}`:                                    "it has left: name one by image=",
		`{"image": "left", "label": "missing"}`: `no column is called "missing"`,
	} {
		plan := filepath.Join(t.TempDir(), "plan.json")
		if err := os.WriteFile(plan, []byte(`{"source": `+source+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errs := call("preview", dir, "--plan", plan, "-o", filepath.Join(t.TempDir(), "sheet.png"))
		if (says == "") != (code == exitOK) || !strings.Contains(errs, says) {
			t.Errorf("%s: code %d: %s", source, code, errs)
		}
	}
}

// shardOf is a folder with an MDS shard of one sample, which has a picture in a column of that name.
func shardOf(t *testing.T, column string, picture []byte) string {
	t.Helper()
	const begin = 4 * 3 // behind the number of samples, where the one begins and where it ends
	shard := binary.LittleEndian.AppendUint32(nil, 1)
	shard = binary.LittleEndian.AppendUint32(shard, begin)
	shard = binary.LittleEndian.AppendUint32(shard, uint32(begin+4+len(picture)))
	shard = append(binary.LittleEndian.AppendUint32(shard, uint32(len(picture))), picture...)
	index := fmt.Sprintf(`{"version": 2, "shards": [{"format": "mds", "compression": null, "column_names": [%q],
		"column_encodings": ["jpeg"], "column_sizes": [null], "samples": 1,
		"raw_data": {"basename": "0.mds", "bytes": %d}}]}`, column, len(shard))
	dir := t.TempDir()
	for name, data := range map[string][]byte{"0.mds": shard, "index.json": []byte(index)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPreviewSaysWhatIsWrong(t *testing.T) {
	dir := pictures(t, 1)
	plan := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(plan, []byte(`{"transforms": [{"op": "Resise"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, exitUsage, "preview takes one folder, not 0"},
		{[]string{dir + "/none"}, exitError, dir + "/none"},
		{[]string{dir, "--samples", "0"}, exitUsage, "--samples 0 is not within 1 to 1000"},
		{[]string{dir, "--samples", "1000", "--epochs", "100"}, exitUsage, "million pixels"},
		{[]string{dir, "--plan", plan}, exitUsage, "Resize"},
		{[]string{dir, "--plan", plan + ".none"}, exitError, "--plan"},
		{[]string{dir, "-o", dir + "/none/sheet.png"}, exitError, "-o: open " + dir + "/none/sheet.png"},
		{[]string{dir + "/none", "-o", dir + "/none/sheet.png"}, exitError, "-o: open "}, // told before anything is read
		{[]string{dir, "-o", dir}, exitError, "is a directory"},
	} {
		code, _, errs := call(append([]string{"preview"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%v: code %d: %s", c.args, code, errs)
		}
	}
}

// A signal ends it, also while the sheet is written, and leaves the file that was there.
func TestPreviewInterrupted(t *testing.T) {
	out := filepath.Join(t.TempDir(), "sheet.png")
	if err := os.WriteFile(out, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := previewOptions{folder: pictures(t, 2), out: out, samples: 2, epochs: 1, width: 64, beforeDrawing: func() {}}
	if err := o.runPreview(ctx, nil, nil, nil); err == nil || err.Error() != "interrupted; nothing was written" {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "before" {
		t.Errorf("the file has %q, %v", b, err)
	}
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	if err := o.runPreview(ctx, nil, nil, nil); err == nil {
		t.Error("a sheet after the signal")
	}
	if _, err := os.Lstat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
	if _, err := encodePNG(ctx, image.NewRGBA(image.Rect(0, 0, 9, 9))); !errors.Is(err, context.Canceled) {
		t.Errorf("written after the signal: %v", err)
	}
}

// It ends with the signal, whatever it does at that moment: this one draws, and does not return.
func TestPreviewEndsWhileItDraws(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	defer close(ended)
	o := previewOptions{folder: pictures(t, 2), out: filepath.Join(t.TempDir(), "out.png"), samples: 2, epochs: 1, width: 64, beforeDrawing: func() {
		cancel()
		<-ended
	}}
	if err := o.runPreview(ctx, nil, nil, nil); err == nil || err.Error() != "interrupted; nothing was written" {
		t.Errorf("error %v", err)
	}
}

// TestPreviewShowsDamage: a picture that does not decode has its reason on the sheet, and stops nothing.
func TestPreviewShowsDamage(t *testing.T) {
	dir := pictures(t, 2)
	files, err := filepath.Glob(dir + "/*/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := call("preview", dir, "-o", "-", "--samples", "1000", "--epochs", "1")
	if code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	sheet, err := png.Decode(bytes.NewReader([]byte(out)))
	if err != nil {
		t.Fatal(err)
	}
	red := 0
	for y := range sheet.Bounds().Dy() {
		for x := range sheet.Bounds().Dx() {
			if r, g, b, _ := sheet.At(x, y).RGBA(); r>>8 == 190 && g>>8 == 30 && b>>8 == 30 {
				red++
			}
		}
	}
	if red < 100 {
		t.Errorf("%d pixels in the colour of errors", red)
	}
}

// TestPreviewFailsWhereAllPicturesDo: the sheet is written, and shows the reasons; scripts see it by the exit code.
func TestPreviewFailsWhereAllPicturesDo(t *testing.T) {
	dir, out := pictures(t, 2), filepath.Join(t.TempDir(), "sheet.png")
	plan := func(size int) string {
		path := filepath.Join(t.TempDir(), "plan.json")
		text := fmt.Sprintf(`{"transforms": [{"op": "RandomCrop", "size": %d}]}`, size)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	expect := func(what, size string, want ...string) {
		t.Helper()
		code, _, errs := call("preview", dir, "-o", out, "--samples", "3", "--epochs", "1", "--plan", size)
		if code != exitError {
			t.Errorf("%s: code %d: %s", what, code, errs)
		}
		for _, text := range append(want, "none of 3 samples came out, the first: ") {
			if !strings.Contains(errs, text) {
				t.Errorf("%s: %s", what, errs)
			}
		}
		sheet, err := os.ReadFile(out)
		if _, broken := png.Decode(bytes.NewReader(sheet)); err != nil || broken != nil {
			t.Error(what, err, broken)
		}
	}
	expect("crops of more than there is", plan(5000), "larger than the picture")
	dir = pictures(t, 2) // the listing that was kept of the other folder would tell that its files changed
	files, err := filepath.Glob(dir + "/*/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if err := os.WriteFile(file, []byte("no picture"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect("files that are no pictures", plan(8), filepath.Base(filepath.Dir(files[0]))+"/")
}

func decodePNG(t *testing.T, name string) image.Image {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	m, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// inked reports whether a column has other than paper between two rows.
func inked(m image.Image, x, from, to int) bool {
	for y := from; y < to; y++ {
		if r, g, b, _ := m.At(x, y).RGBA(); r != 0xffff || g != 0xffff || b != 0xffff {
			return true
		}
	}
	return false
}
