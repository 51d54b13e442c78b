package jpegtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The first files of two classes. The hash holds the promise of the same bytes on every machine and with every version of
// Go; a change of it changes every data set that somebody has made with this package.
func TestFileIsFixed(t *testing.T) {
	const want = "e405d05055bdce52"
	sum := sha256.New()
	size := 0
	for i := range 9 {
		b := File(i%2, i, 1)
		size += len(b)
		sum.Write(b)
	}
	if got := hex.EncodeToString(sum.Sum(nil)[:8]); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
	if size/9 < 60_000 || size/9 > 140_000 {
		t.Errorf("mean size %d", size/9)
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	if err := Folder(dir, 2, 3, 7); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(names) != 6 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for class := range 2 {
		for i := range 3 {
			b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("class_%03d", class), fmt.Sprintf("img_%04d.jpg", i)))
			if err != nil || !bytes.Equal(b, File(class, i, 7)) {
				t.Errorf("file %d of class %d is another one (%v)", i, class, err)
			}
		}
	}
	if err := Folder(filepath.Join(names[0], "below"), 1, 1, 1); err == nil {
		t.Error("wrote a folder below a file")
	}
}

// The mix of a hundred files of a class is that of photographs.
func TestMix(t *testing.T) {
	count := map[string]int{}
	restarts := 0
	for i := range 100 {
		o := kind(i)
		count[fmt.Sprint(o.Sampling)]++
		restarts += min(o.Restart, 1)
	}
	for s, want := range map[string]int{
		fmt.Sprint(S444): 76, fmt.Sprint(S420): 20, fmt.Sprint(S422): 1, fmt.Sprint(S440): 1, fmt.Sprint(S411): 1, fmt.Sprint(Grey): 1,
	} {
		if count[s] != want {
			t.Errorf("%d files of sampling %s, want %d", count[s], s, want)
		}
	}
	if restarts < 5 {
		t.Errorf("%d files with restart markers", restarts)
	}
}

// Another decoder, which knows these layouts, gives back nearly the picture that was encoded.
func TestDecodable(t *testing.T) {
	m := Photograph(1, 1, 123, 77)
	for _, o := range []Options{
		{}, {Sampling: S420}, {Sampling: S422}, {Sampling: S440}, {Sampling: S411}, {Sampling: S410}, {Sampling: Grey},
		{Restart: 3}, {Sampling: S420, Restart: 1, StandardTables: true}, {Quality: 100}, {Header: HeaderAdobeRGB},
		{Header: HeaderAdobeYCbCr, Extended: true}, {Header: HeaderNone, WideQuant: true}, {Header: HeaderNone, IDs: []byte("RGB")},
	} {
		o.Quality = max(o.Quality, 95)
		got, err := jpeg.Decode(bytes.NewReader(Encode(m, o)))
		if err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		grey := len(o.Sampling) == 1
		sum := 0
		for y := range m.H {
			for x := range m.W {
				r, g, b, _ := got.At(x, y).RGBA()
				p := m.Pix[y*m.Stride+3*x:]
				want := [3]int{int(p[0]), int(p[1]), int(p[2])}
				if grey {
					l := int(ycc(want[0], want[1], want[2])[0])
					want = [3]int{l, l, l}
				}
				for c, v := range [3]uint32{r, g, b} {
					sum += abs(int(v>>8) - want[c])
				}
			}
		}
		if mean := float64(sum) / float64(3*m.W*m.H); mean > 8 || grey && mean > 2 {
			t.Errorf("%+v: mean difference %.1f", o, mean)
		}
	}
}

// Tables made for a scan have codes of at most 16 bits for all symbols that occur, leave the code of all ones free, and
// need fewer bits than the standard's.
func TestOptimal(t *testing.T) {
	r := newRandom(1)
	cases := map[string]frequencies{"one": {7: 3}, "two": {0: 1, 200: 1}, "none": {}}
	fibonacci, even, random := frequencies{}, frequencies{}, frequencies{}
	a, b := 1, 1
	for i := range 40 {
		fibonacci[i] = a
		a, b = b, a+b
	}
	for i := range 256 {
		even[i], random[i] = 5, r.below(1000)*r.below(1000)
	}
	cases["fibonacci"], cases["even"], cases["random"] = fibonacci, even, random
	for name, f := range cases {
		d := f.optimal()
		used, symbols := 0, 0
		for l, n := range d[:16] {
			used += int(n) << (15 - l)
			symbols += int(n)
		}
		if used >= 1<<16 || len(d) != 16+symbols {
			t.Errorf("%s: %d of 65536 codes, %d symbols in %d bytes", name, used, symbols, len(d))
		}
		book := d.codes()
		for s, n := range f {
			if n > 0 && book[s].n == 0 {
				t.Errorf("%s: no code for %d", name, s)
			}
		}
	}
	m := Photograph(1, 1, 200, 150)
	if small, large := len(Encode(m, Options{})), len(Encode(m, Options{StandardTables: true})); small >= large {
		t.Errorf("%d bytes with tables of its own, %d with the standard's", small, large)
	}
}

func TestPhotographSizes(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {2, 700}, {700, 2}, {33, 65}} {
		m := Photograph(3, 3, size[0], size[1])
		if m.W != size[0] || m.H != size[1] || len(m.Pix) < m.H*m.Stride+pixel.Pad {
			t.Errorf("%v: %dx%d, %d bytes", size, m.W, m.H, len(m.Pix))
		}
	}
}

func BenchmarkFile(b *testing.B) {
	b.ReportAllocs()
	n := 0
	for i := 0; b.Loop(); i++ {
		n += len(File(i%10, i, 1))
	}
	b.SetBytes(int64(n / b.N))
}
