package codec

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/bmp"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// collector keeps the rows it is given.
type collector struct{ pix []byte }

type collectorOf struct {
	*collector
	width int
}

func (c collectorOf) Rows(pix []byte, stride, n int) {
	for y := range n {
		c.pix = append(c.pix, pix[y*stride:][:3*c.width]...)
	}
}

// decode gives a region, or the whole picture if r is empty.
func decode(d *Decoder, b []byte, l Limits, r image.Rectangle) (w, h int, pix []byte, err error) {
	return decodeAs(d, d.Parse, b, l, r)
}

func decodeAs(d *Decoder, parse func([]byte, Limits) (int, int, error), b []byte, l Limits, r image.Rectangle) (w, h int, pix []byte, err error) {
	if w, h, err = parse(b, l); err != nil {
		return 0, 0, nil, err
	}
	if r.Empty() {
		r = image.Rect(0, 0, w, h)
	}
	c := new(collector)
	if err := d.Decode(r, collectorOf{c, r.Dx()}); err != nil {
		return 0, 0, nil, err
	}
	if len(c.pix) != 3*r.Dx()*r.Dy() {
		return 0, 0, nil, fmt.Errorf("%d bytes of %v", len(c.pix), r)
	}
	return w, h, c.pix, nil
}

// outcome is how the table has it: "refused", or size and hash.
func outcome(d *Decoder, name string, b []byte) (string, error) {
	parse := d.Parse
	if strings.HasPrefix(name, "turned-") {
		parse = d.ParseUpright
	}
	w, h, pix, err := decodeAs(d, parse, b, DefaultLimits(), image.Rectangle{})
	if err != nil {
		return "refused", err
	}
	sum := sha256.Sum256(pix)
	return fmt.Sprintf("ok\t%d\t%d\t%s", w, h, hex.EncodeToString(sum[:16])), nil
}

// corpus is files by name, and what Pillow says of them.
type corpus struct {
	files map[string][]byte
	table map[string]string
	said  map[string]string // Pillow's reasons
}

// archived reads the corpus of this package, which testdata/corpus made with Pillow 13.
func archived(t testing.TB) corpus {
	z, err := zip.OpenReader("testdata/corpus.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	text := files["table.txt"]
	delete(files, "table.txt")
	return newCorpus(files, text)
}

func newCorpus(files map[string][]byte, text []byte) corpus {
	c := corpus{files, map[string]string{}, map[string]string{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), "\t")
		if strings.HasPrefix(name, "#") {
			continue
		}
		if verdict, why, _ := strings.Cut(rest, "\t"); verdict == "refused" {
			c.said[name] = why
			rest = verdict
		}
		c.table[name] = rest
	}
	return c
}

// TestPillow compares pixels and verdicts with Pillow's, on the files of the archive.
func TestPillow(t *testing.T) {
	compare(t, archived(t), 400, 500)
}

// TestPillowItself makes other files and asks the Pillow of the Python that FEEDWATER_PYTHON names; where there is none, the
// archive stands for it. Go's own encoders add files.
func TestPillowItself(t *testing.T) {
	python := os.Getenv("FEEDWATER_PYTHON")
	if python == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	run := func(args ...string) []byte {
		c := exec.CommandContext(ctx, python, append([]string{"testdata/corpus"}, args...)...)
		c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
		c.Stderr = os.Stderr
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	run("make", dir, "2")
	for name, data := range encoded(t) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text := run("table", dir)
	files := map[string][]byte{}
	c := newCorpus(files, text)
	for name := range c.table {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	compare(t, c, 400, 500)
}

// encoded is pictures of every type that Go's encoders know.
func encoded(t *testing.T) map[string][]byte {
	files := map[string][]byte{}
	add := func(name string, encode func(io.Writer) error) {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		files["go-"+name] = b.Bytes()
	}
	r := image.Rect(0, 0, 53, 37)
	palette := make(color.Palette, 200)
	for i := range palette {
		palette[i] = color.NRGBA{byte(i * 7), byte(i * 11), byte(255 - i), 255}
	}
	indexed := image.NewPaletted(r, palette)
	pictures := map[string]interface {
		image.Image
		Set(x, y int, c color.Color)
	}{
		"gray": image.NewGray(r), "gray16": image.NewGray16(r), "nrgba": image.NewNRGBA(r), "nrgba64": image.NewNRGBA64(r),
		"rgba": image.NewRGBA(r), "rgba64": image.NewRGBA64(r), "paletted": indexed,
	}
	for name, m := range pictures {
		for i := range r.Dx() * r.Dy() {
			x, y := i%r.Dx(), i/r.Dx()
			m.Set(x, y, color.NRGBA64{uint16(x * 1237), uint16(y * 1771), uint16(x * y * 33), uint16(0xffff - x*y*20)})
		}
		for level := range 4 {
			e := png.Encoder{CompressionLevel: png.CompressionLevel(-level)}
			add(fmt.Sprintf("png-%s-%d", name, level), func(w io.Writer) error { return e.Encode(w, m) })
		}
		add("gif-"+name, func(w io.Writer) error { return gif.Encode(w, m, nil) })
		add("bmp-"+name, func(w io.Writer) error { return bmp.Encode(w, m) })
	}
	return files
}

// compare checks every file, at each level of kernels. Whole files must be equal. Of the damaged ones at most one in a hundred may
// differ, and only for a reason that known has. What has an index is equal with it too.
func compare(t *testing.T, c corpus, whole, damaged int) {
	for _, level := range kernel.Levels() {
		compareAt(t, level, c, whole, damaged)
	}
}

func compareAt(t *testing.T, level string, c corpus, whole, damaged int) {
	d := NewDecoder(level)
	n, differ, indexed := map[bool]int{}, 0, 0
	for name, want := range c.table {
		isDamaged := strings.HasPrefix(name, "damaged-")
		n[isDamaged]++
		d.UseIndex(nil, 8)
		got, err := outcome(d, name, c.files[name])
		if got == want {
			if index := d.AppendIndex(nil); len(index) > 0 {
				indexed++
				d.UseIndex(index, 8)
				if again, err := outcome(d, name, c.files[name]); again != want {
					t.Errorf("%s, with its index: %s (%v), want %s", name, again, err, want)
				}
			}
			continue
		}
		if known(err) && isDamaged {
			differ++
			continue
		}
		t.Errorf("%s: %s (%v), want %s %s", name, got, err, want, c.said[name])
	}
	if n[false] < whole || n[true] < damaged || differ*100 > n[true] || indexed == 0 {
		t.Errorf("%d whole files and %d damaged ones, of which %d differ for known reasons; %d have an index", n[false], n[true], differ, indexed)
	}
	t.Logf("%s: %d whole files and %d damaged ones, of which %d differ for known reasons; %d have an index", level, n[false], n[true], differ, indexed)
}

// known says whether a damaged file may be refused although Pillow takes it: sides over 65,500 are a limit of ours for every format, of Pillow's
// for JPEG alone.
func known(err error) bool { return errors.Is(err, ErrTooLarge) }
