package jpeg

import (
	"bytes"
	"encoding/binary"
	"image"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/budget"
	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// indexOf makes the index of a file on the way of decoding a region; empty: none.
func indexOf(t testing.TB, d *Decoder, file []byte, interval int, r image.Rectangle) []byte {
	t.Helper()
	if _, _, err := d.Parse(file, Limits{}); err != nil {
		t.Fatal(err)
	}
	d.Record(interval)
	if !r.Empty() {
		if err := d.Decode(r, nowhere{}); err != nil {
			t.Fatal(err)
		}
	}
	return d.AppendIndex(nil)
}

// checkIndexed compares regions with and without an index.
func checkIndexed(t testing.TB, d *Decoder, file, index []byte, r *rand.Rand, regions int) {
	t.Helper()
	w, h, whole, err := decodeAll(d, file)
	if err != nil {
		t.Fatal(err)
	}
	file = guardtest.Copy(t, file)
	for i := range regions {
		region := image.Rect(0, 0, w, h)
		if i > 0 {
			region = randomRegion(r, w, h)
		}
		gotW, gotH, err := d.ParseIndexed(file, Limits{}, index)
		if err != nil || gotW != w || gotH != h {
			t.Fatalf("%dx%d, %v; want %dx%d", gotW, gotH, err, w, h)
		}
		if len(d.index.marks) == 0 {
			t.Fatal("the index was not used")
		}
		if got, err := decodeRegion(d, region); err != nil || !bytes.Equal(got, crop(whole, w, region)) {
			t.Fatalf("region %v of %dx%d differs with an index of every %d (%v)", region, w, h, IndexInterval(index), err)
		}
	}
}

// Every sampling, sizes of one MCU to many, intervals from 1 to more than a row: the same pixels in every region.
func TestIndexChangesNoPixel(t *testing.T) {
	forLevels(t, func(t *testing.T, d *Decoder) {
		r := rand.New(rand.NewPCG(7, 7))
		for i, name := range inOrder(samplings) {
			for _, side := range []int{1, 17, 150} {
				m := jpegtest.Photograph(uint64(i), i, side+r.IntN(side), side+r.IntN(side))
				file := jpegtest.Encode(m, jpegtest.Options{Sampling: samplings[name], Quality: 50 + 3*i})
				for _, interval := range []int{1, 3, 8, 1000} {
					index := indexOf(t, d, file, interval, randomRegion(r, m.W, m.H))
					if len(index) == 0 {
						t.Fatalf("%s: no index", name)
					}
					if IndexInterval(index) != interval {
						t.Fatalf("%s: interval %d of %d", name, IndexInterval(index), interval)
					}
					checkIndexed(t, d, file, index, r, 6)
				}
			}
		}
	})
}

// It does not matter which region was decoded when an index was made, if any.
func TestIndexDoesNotDependOnTheRegion(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	d := NewDecoder(kernel.Levels()[0])
	for _, file := range pictures(t, 12) {
		w, h, err := d.Parse(file, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		want := indexOf(t, d, file, 8, image.Rectangle{})
		for range 5 {
			if got := indexOf(t, d, file, 8, randomRegion(r, w, h)); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, and %d when nothing was decoded", len(got), len(want))
			}
		}
		if len(want) > 0 {
			checkIndexed(t, d, file, want, r, 12)
		}
	}
}

// Data with many bytes 0xFF, so that marks stand before, in and behind stuffed ones.
func TestIndexOfStuffedData(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	d := NewDecoder(kernel.Scalar)
	stuffed := 0
	for seed := range uint64(20) {
		m := pixel.Image{W: 64, H: 64, Stride: 192, Pix: make([]byte, 64*192+pixel.Pad)}
		for i := range m.Pix {
			m.Pix[i] = byte(-(r.Uint32() & 1))
		}
		file := jpegtest.Encode(&m, jpegtest.Options{Quality: 100, StandardTables: seed%2 == 0})
		stuffed += bytes.Count(file, []byte{0xff, 0})
		checkIndexed(t, d, file, indexOf(t, d, file, 1, image.Rectangle{}), r, 20)
	}
	if stuffed < 1000 {
		t.Errorf("%d stuffed bytes", stuffed)
	}
}

// Files that have no index: of other kinds, and damaged ones.
func TestNoIndex(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	m := jpegtest.Photograph(1, 1, 100, 80)
	whole := jpegtest.Encode(m, jpegtest.Options{})
	data := find(whole, mSOS, 0).start + 20 // behind the header
	for name, file := range map[string][]byte{
		"progressive":      jpegtest.Encode(m, jpegtest.Options{Progressive: jpegtest.Script(3)}),
		"several scans":    jpegtest.Encode(m, jpegtest.Options{Scans: [][]int{{0}, {1}, {2}}}),
		"restart markers":  jpegtest.Encode(m, jpegtest.Options{Restart: 5}),
		"half the data":    append(bytes.Clone(whole[:data+(len(whole)-data)/2]), eoi...),
		"too much data":    insert(whole, len(whole)-2, []byte{1, 2, 3}),
		"bytes left out":   append(bytes.Clone(whole[:data+100]), whole[data+700:]...),
		"a run of garbage": overwrite(whole, data+50, bytes.Repeat([]byte{0xff, 0}, 30)...),
	} {
		if index := indexOf(t, d, file, 8, image.Rect(3, 3, 9, 9)); len(index) != 0 {
			t.Errorf("%s: an index of %d bytes", name, len(index))
		}
	}
	if index := indexOf(t, d, whole, 0, image.Rect(3, 3, 9, 9)); len(index) != 0 {
		t.Errorf("an index of %d bytes nobody asked for", len(index))
	}
	if index := indexOf(t, d, whole, 8, image.Rect(3, 3, 9, 9)); len(index) == 0 {
		t.Error("the whole file has no index")
	}
}

// bare is a grey file of a row of blocks. Each of its tables has one code, a zero: for the size of a difference, and for the end of a block.
func bare(blocks, size byte, data string) []byte {
	const one = "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" // code of one bit
	return slices.Concat(
		[]byte("\xff\xd8"), quantSegment(0, 1),
		[]byte{0xff, mSOF0, 0, 11, 8, 0, 8, 0, 8 * blocks, 1, 1, 0x11, 0},
		[]byte("\xff\xc4\x00\x14\x00"+one), []byte{size},
		[]byte("\xff\xc4\x00\x14\x10"+one+"\x00"),
		[]byte("\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"+data), eoi)
}

// A file has no index if a table lacks a code of its data, whatever else is right: libjpeg takes 17 bits for it.
func TestNoIndexOfUndefinedCodes(t *testing.T) {
	forLevels(t, func(t *testing.T, d *Decoder) {
		for name, c := range map[string]struct {
			data string
			want bool
		}{
			"whole":               {"\x3f", true},
			"of a difference":     {"\x80\x00\x3f", false},
			"of a coefficient":    {"\x40\x00\x3f", false},
			"a byte behind whole": {"\x3f\x00", false},
		} {
			if index := indexOf(t, d, bare(1, 0, c.data), 8, image.Rectangle{}); c.want != (len(index) > 0) {
				t.Errorf("%s: an index of %d bytes", name, len(index))
			}
		}
	})
}

// First coefficients that no picture has, beyond 16 bits and back, are marked as they are.
func TestIndexOfHugeCoefficients(t *testing.T) {
	up, down := "01111111111111110", "00000000000000000" // 32,767 more, and less
	bits := strings.Repeat(up, 20) + strings.Repeat(down, 11)
	var data strings.Builder
	for bits += "1"; len(bits) >= 8; bits = bits[8:] {
		b, _ := strconv.ParseUint(bits[:8], 2, 8)
		data.WriteByte(byte(b))
		if b == 0xff {
			data.WriteByte(0)
		}
	}
	file := bare(31, 15, data.String())
	r := rand.New(rand.NewPCG(11, 11))
	forLevels(t, func(t *testing.T, d *Decoder) {
		for _, interval := range []int{1, 2, 5} {
			checkIndexed(t, d, file, indexOf(t, d, file, interval, image.Rectangle{}), r, 20)
		}
	})
}

// Damaged files have their pixels and verdict with the index that they have, if they have one.
func TestIndexOfDamage(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	r := rand.New(rand.NewPCG(10, 10))
	have, damages := 0, 1000
	for i := range damages {
		o := jpegtest.Options{Sampling: samplings[inOrder(samplings)[i%len(samplings)]], Quality: 70}
		file := damaged(r, jpegtest.Encode(jpegtest.Photograph(uint64(i%9), i, 40+r.IntN(30), 30+r.IntN(30)), o))
		if _, _, err := d.Parse(file, Limits{}); err != nil {
			continue
		}
		if index := indexOf(t, d, file, 1+i%8, image.Rectangle{}); len(index) > 0 {
			have++
			checkIndexed(t, d, file, index, r, 4)
		}
	}
	if have == 0 || have > damages/4 {
		t.Errorf("%d of %d damaged files have an index", have, damages)
	}
}

// Senseless bytes are no index: the file is decoded without one.
func TestSenselessIndex(t *testing.T) {
	d := NewDecoder(kernel.Scalar)
	file := jpegtest.Encode(jpegtest.Photograph(1, 1, 100, 80), jpegtest.Options{})
	w, h, want, err := decodeAll(d, file)
	if err != nil {
		t.Fatal(err)
	}
	good := indexOf(t, d, file, 8, image.Rectangle{})
	for name, index := range map[string][]byte{
		"empty": nil, "zero": {0}, "half": good[:len(good)/2], "longer": append(bytes.Clone(good), 0),
		"another interval": append([]byte{3}, good[1:]...),
		"interval too big": binary.AppendUvarint(nil, MaxIndexInterval+1),
		"huge steps":       append([]byte{8}, bytes.Repeat([]byte{0xff}, 400)...),
		"overflow":         append([]byte{8}, bytes.Repeat([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0}, 40)...),
	} {
		gotW, gotH, err := d.ParseIndexed(file, Limits{}, index)
		if err != nil || gotW != w || gotH != h || len(d.index.marks) != 0 {
			t.Errorf("%s: %dx%d, %d marks, %v", name, gotW, gotH, len(d.index.marks), err)
		}
		d.Record(8)
		if got, err := decodeRegion(d, image.Rect(0, 0, w, h)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: other pixels (%v)", name, err)
		}
		if again := d.AppendIndex(nil); !bytes.Equal(again, good) {
			t.Errorf("%s: it is not made again", name)
		}
	}
}

// With an index nothing is allocated either, and nothing while one is made.
func TestIndexAllocatesNothing(t *testing.T) {
	d := NewDecoder(kernel.Levels()[0])
	files := pictures(t, 12)
	indexes, room := make([][]byte, len(files)), make([]byte, 0, 1<<20)
	if n := testing.AllocsPerRun(3, func() {
		for i, b := range files {
			w, h, err := d.Parse(b, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			d.Record(8)
			if err := d.Decode(image.Rect(w/5, h/5, w, h), nowhere{}); err != nil {
				t.Fatal(err)
			}
			if index := d.AppendIndex(room); indexes[i] == nil {
				indexes[i] = bytes.Clone(index)
			}
			if w, h, err = d.ParseIndexed(b, Limits{}, indexes[i]); err != nil {
				t.Fatal(err)
			}
			if err := d.Decode(image.Rect(w/5, h/5, w, h), nowhere{}); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzIndex: any bytes as the index of any file do no harm: rows come, all of them, within the memory that the file takes; and the index
// that the file has changes nothing.
func FuzzIndex(f *testing.F) {
	d := NewDecoder(kernel.Levels()[0])
	for i, s := range [][]jpegtest.Factors{jpegtest.S444, jpegtest.S420, jpegtest.Grey} {
		file := jpegtest.Encode(jpegtest.Photograph(uint64(i), i, 30+i, 40-i), jpegtest.Options{Sampling: s, Quality: 40})
		f.Add(file, indexOf(f, d, file, 2, image.Rectangle{}), uint64(i))
	}
	f.Fuzz(func(t *testing.T, file, index []byte, seed uint64) {
		file = guardtest.Copy(t, file)
		w, h, err := d.ParseIndexed(file, Limits{}, index)
		if err != nil || w*h > 1<<20 {
			return
		}
		r := rand.New(rand.NewPCG(seed, 3))
		region := randomRegion(r, w, h)
		const markBytes = 24 // of the file's at least two; the list grows by doubling
		budget.Hold(t, d.declared(region.Dx(), region.Dy())+2*markBytes*uint64(len(index)), func() {
			d := NewDecoder(kernel.Scalar)
			if _, _, err := d.ParseIndexed(file, Limits{}, index); err != nil || d.Decode(region, nowhere{}) != nil {
				t.Error(err)
			}
		})
		if got, err := decodeRegion(d, region); err != nil || len(got) != 3*region.Dx()*region.Dy() {
			t.Fatalf("%d bytes of %v, %v", len(got), region, err)
		}
		if _, _, err := d.Parse(file, Limits{}); err != nil {
			return
		}
		d.Record(1 + int(seed%9))
		if own := d.AppendIndex(nil); len(own) > 0 {
			checkIndexed(t, d, file, own, r, 3)
		}
	})
}
