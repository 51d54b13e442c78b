package png

import (
	"bytes"
	"image"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// filterRuns are rows of so many bytes, of which n are wanted, with filters in runs, mostly Paeth's, and the wanted bytes as they are without. A pad is
// behind them, and an inaccessible page.
func filterRuns(t *testing.T, r *rand.Rand, rows, stride, n, bpp int) (data []byte, want [][]byte) {
	data = guardtest.Bytes(t, (rows-1)*stride+1+n+filterPad)
	few := []uint32{1, 3, 255}[r.IntN(3)] // of few values many are as near as others
	for i := range data {
		data[i] = byte(r.Uint32() & few * 85)
		if few == 255 {
			data[i] = byte(r.Uint32())
		}
	}
	above := make([]byte, n)
	for y := 0; y < rows; {
		filter := byte(r.IntN(lastFilter + 1))
		if r.IntN(3) > 0 {
			filter = paethFilter
		}
		for range 1 + r.IntN(40) {
			if y == rows {
				break
			}
			data[y*stride] = filter
			above = definedRow(filter, data[y*stride+1:][:n], above, bpp)
			want = append(want, above)
			y++
		}
	}
	return data, want
}

// Rows in turn are made as they are defined, one or several at once, whichever came before, of every length and pixel; no byte beyond their memory is
// touched. Behind them, and between them in a region that ends before them, may lie anything.
func TestLines(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	for _, level := range kernel.Levels() {
		made := map[int]int{}
		for turn := range 400 {
			bpp := 1 + turn%8
			n := bpp * (1 + r.IntN(90))
			if turn%5 == 0 {
				n = (filterPad + bpp - 1) / bpp * bpp
			}
			rows, stride, atOnce := 1+r.IntN(90), 1+n+bpp*r.IntN(2)*r.IntN(30), []int{1, 2, 5, 7, rowsAtOnce, rowsAtOnce}[r.IntN(6)]
			data, want := filterRuns(t, r, rows, stride, n, bpp)
			var l lines
			if size := max(2, atOnce) * (n + filterPad); r.IntN(2) == 0 {
				l.memory = guardtest.Bytes(t, size)
			} else {
				l.memory = guardtest.CopyAfter(t, make([]byte, size))
			}
			l.begin(n, atOnce)
			for y := 0; y < rows; {
				first, k := l.undo(filtered{data[y*stride:], stride, n, bpp}, rows-y, kernel.Vector(level))
				if k == 0 || k > max(1, atOnce) || y+k > rows {
					t.Fatalf("%s: row %d of %d, %d at once: %d are made", level, y, rows, atOnce, k)
				}
				for i := range k {
					if got := l.line(first + i)[:n]; !bytes.Equal(got, want[y+i]) {
						t.Fatalf("%s: row %d of %d bytes, pixels of %d, %d of %d rows at once: differs", level, y+i, n, bpp, k, atOnce)
					}
				}
				y += k
				made[k]++
			}
		}
		if kernel.Vector(level) && (made[1] < 1000 || made[4] < 200 || made[8] < 100 || len(made) != 3) {
			t.Errorf("%s: so many rows at once: %v", level, made)
		}
	}
}

// A filter that is none is refused.
func TestLinesRefuse(t *testing.T) {
	var l lines
	l.begin(3, 1)
	data := make([]byte, 4+filterPad)
	data[0] = lastFilter + 1
	for _, level := range kernel.Levels() {
		if _, n := l.undo(filtered{data, 4, 3, 3}, 1, kernel.Vector(level)); n != 0 {
			t.Errorf("%s: %d rows are made", level, n)
		}
	}
}

// Rows of every length, of which more or fewer go into what is decompressed at once, come out as they went in.
func TestWideRows(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 1))
	for _, level := range kernel.Levels() {
		d := NewDecoder(level)
		for _, w := range []int{900, 2700, 2800, 5400, 5500, 11000, 22000, 90000} {
			const h = 33
			m := drawing(r, 0, w, h)
			var file bytes.Buffer
			if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&file, m); err != nil {
				t.Fatal(err)
			}
			got := pixels{width: w}
			if _, _, err := d.Parse(file.Bytes()); err != nil {
				t.Fatal(err)
			}
			if err := d.Decode(image.Rect(0, 0, w, h), &got); err != nil || !d.Verified() {
				t.Fatal(w, err, d.Verified())
			}
			pix := m.(*image.RGBA).Pix
			for i := range w * h {
				if !bytes.Equal(got.pix[3*i:3*i+3], pix[4*i:4*i+3]) {
					t.Fatalf("%s: width %d: pixel %d, %d differs", level, w, i%w, i/w)
				}
			}
		}
	}
}
