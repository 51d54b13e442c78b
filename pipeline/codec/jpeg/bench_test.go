package jpeg

import (
	"image"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

func BenchmarkDecode(b *testing.B) {
	files := pictures(b, 60)
	benchParts(b, files)
}

// The same pictures in other kinds of files.
func BenchmarkKinds(b *testing.B) {
	var decoded []pixel.Image
	d := NewDecoder(kernel.Levels()[0])
	for _, file := range pictures(b, 20) {
		w, h, pix, err := decodeAll(d, file)
		if err != nil {
			b.Fatal(err)
		}
		decoded = append(decoded, pixel.Image{Pix: pix, W: w, H: h, Stride: 3 * w})
	}
	for _, kind := range []struct {
		name string
		o    jpegtest.Options
	}{
		{"sequential", jpegtest.Options{}},
		{"scans", jpegtest.Options{Scans: [][]int{{0}, {1}, {2}}}},
		{"progressive", jpegtest.Options{Progressive: jpegtest.Script(3)}},
		{"progressive420", jpegtest.Options{Progressive: jpegtest.Script(3), Sampling: jpegtest.S420}},
		{"smoothed", jpegtest.Options{Progressive: jpegtest.Script(3)[:6]}},
		{"cmyk", jpegtest.Options{Sampling: jpegtest.CMYK}},
	} {
		var files [][]byte
		for i := range decoded {
			files = append(files, jpegtest.Encode(&decoded[i], kind.o))
		}
		b.Run("kind="+kind.name, func(b *testing.B) { benchParts(b, files) })
	}
}

// benchParts decodes files whole and in part, at each level.
func benchParts(b *testing.B, files [][]byte) {
	for _, level := range kernel.Levels() {
		b.Run("part=all/level="+level, func(b *testing.B) {
			bench(b, level, files, func(w, h int) image.Rectangle { return image.Rect(0, 0, w, h) })
		})
		// The mean RandomResizedCrop: 0.43 of the area.
		b.Run("part=crop/level="+level, func(b *testing.B) {
			bench(b, level, files, func(w, h int) image.Rectangle {
				return image.Rect(w*17/100, h*17/100, w*83/100, h*83/100)
			})
		})
	}
}

// bench decodes a region of one file after the other. The bytes per second are those of the files.
func bench(b *testing.B, level string, files [][]byte, region func(w, h int) image.Rectangle) {
	d := NewDecoder(level)
	size := 0
	for _, f := range files { // takes the memory that the decoder keeps, so that the steady state is measured
		size += len(f)
		w, h, err := d.Parse(f, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Decode(region(w, h), nowhere{}); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(size / len(files)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w, h, err := d.Parse(files[i%len(files)], Limits{})
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Decode(region(w, h), nowhere{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIndex: regions with and without an index of every 8 blocks, as the first epoch has them, which makes it on the way, and the
// making alone; in turns, since machines drift. The times of each are in its metric.
func BenchmarkIndex(b *testing.B) {
	files := pictures(b, 60)
	for _, level := range kernel.Levels() {
		b.Run("level="+level, func(b *testing.B) { benchIndex(b, NewDecoder(level), files) })
	}
}

func benchIndex(b *testing.B, d *Decoder, files [][]byte) {
	indexes, room := make([][]byte, len(files)), make([]byte, 0, 1<<20)
	kinds := []struct {
		name string
		run  func(i int)
	}{
		{"plain", func(i int) { benchCrop(b, d, files[i], nil, 0) }},
		{"indexed", func(i int) { benchCrop(b, d, files[i], indexes[i], 0) }},
		{"first", func(i int) { benchCrop(b, d, files[i], nil, 8); d.AppendIndex(room) }},
		{"made", func(i int) { _, _, _ = d.Parse(files[i], Limits{}); d.Record(8); d.AppendIndex(room) }},
	}
	for i, f := range files {
		indexes[i] = indexOf(b, d, f, 8, image.Rectangle{})
	}
	spent := make([]time.Duration, len(kinds))
	for i := 0; b.Loop(); i++ {
		for k := range kinds {
			began := time.Now()
			kinds[k].run(i % len(files))
			spent[k] += time.Since(began)
		}
	}
	for k := range kinds {
		b.ReportMetric(float64(spent[k].Microseconds())/float64(b.N), kinds[k].name+"-us/op")
	}
}

// benchCrop decodes the mean RandomResizedCrop.
func benchCrop(b *testing.B, d *Decoder, file, index []byte, interval int) {
	w, h, err := d.ParseIndexed(file, Limits{}, index)
	if err != nil {
		b.Fatal(err)
	}
	d.Record(interval)
	if err := d.Decode(image.Rect(w*17/100, h*17/100, w*83/100, h*83/100), nowhere{}); err != nil {
		b.Fatal(err)
	}
}
