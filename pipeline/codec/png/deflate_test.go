package png

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// decompressors is a decompressor of each level.
func decompressors() (all []*decompressor) {
	for _, level := range kernel.Levels() {
		all = append(all, &decompressor{vector: kernel.Vector(level)})
	}
	return all
}

// decompressAll decompresses src through a window that moves, up to most bytes. It reports whether the data ends, and where.
func decompressAll(d *decompressor, src []byte, most int) (out []byte, ended bool, position int) {
	const ahead = 5000
	window := make([]byte, history+3*ahead+2*windowSlack)
	d.open(src)
	for w := 0; len(out) < most; {
		if w > history+ahead {
			copy(window, window[w-history:w])
			w = history
		}
		end, ended, err := d.decompress(window, w, w+ahead)
		out = append(out, window[w:end]...)
		if err != nil || ended {
			return out, ended, d.position()
		}
		w = end
	}
	return out, false, 0
}

// samples are bytes of several kinds: of one value, of runs of each short period, noise, and what resembles rows of pictures.
func samples(r *rand.Rand) map[string][]byte {
	zeros := make([]byte, 200_000)
	noise, rows, periods := bytes.Clone(zeros), bytes.Clone(zeros), []byte(nil)
	for i := range noise {
		noise[i] = byte(r.Uint32())
		rows[i] = byte(int(3*r.NormFloat64()) + i/3%40*i%3)
	}
	for period := 1; period < 40; period++ {
		run := make([]byte, 20+r.IntN(900))
		for i := range run {
			if i < period {
				run[i] = byte(r.Uint32())
			} else {
				run[i] = run[i-period]
			}
		}
		periods = append(periods, run...)
	}
	far := append(bytes.Clone(noise[:history]), noise[:history]...)
	return map[string][]byte{
		"nothing": nil, "a byte": {7}, "zeros": zeros, "noise": noise, "rows": rows, "periods": periods, "far": far,
		"two values": bytes.Map(func(c rune) rune { return c & 1 }, noise[:9000]),
	}
}

// What compress/flate makes, at every level, is decompressed: all of it, and to the byte where it ends.
func TestDecompressTakesWhatFlateMakes(t *testing.T) {
	for _, d := range decompressors() {
		testTakesWhatFlateMakes(t, d)
	}
}

func testTakesWhatFlateMakes(t *testing.T, d *decompressor) {
	for name, want := range samples(rand.New(rand.NewPCG(1, 3))) {
		for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
			var b bytes.Buffer
			w, err := flate.NewWriter(&b, level)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = w.Write(want)
			_ = w.Close()
			got, ended, position := decompressAll(d, append(b.Bytes(), "behind"...), len(want)+1)
			if !ended || !bytes.Equal(got, want) || position != b.Len() {
				t.Errorf("%s, level %d: %d of %d bytes, ended %t at %d of %d", name, level, len(got), len(want), ended, position, b.Len())
			}
			for missing := 1; missing < min(b.Len(), 40); missing++ {
				if _, ended, _ := decompressAll(d, b.Bytes()[:b.Len()-missing], len(want)+1); ended {
					t.Fatalf("%s, level %d: %d bytes are missing, and it ends", name, level, missing)
				}
			}
		}
	}
}

// Data that claims what it does not hold, and codes that are not complete, are in doubt.
func TestDecompressDoubts(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":                       "",
		"no kind of block":              "\x07",
		"lengths of a block contradict": "\x01\x01\x00\xfe\xfea",
		"a stored block that is cut":    "\x01\x05\x00\xfa\xffabcd",
		"a copy from before the data":   "\x03\x02\x00",
		"no end of the block":           "\x63\x60",
		"lengths without codes":         "\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		for _, d := range decompressors() {
			if out, ended, _ := decompressAll(d, []byte(data), 100); ended {
				t.Errorf("%s: ends, with %x", name, out)
			}
		}
	}
	empty := bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 1<<20) // blocks of nothing
	d := new(decompressor)
	if _, ended, _ := decompressAll(d, append(empty, 1, 0, 0, 0xff, 0xff), 1); ended || d.blocks > freeBlocks+len(empty)/blockBytes+2 {
		t.Errorf("%d blocks of nothing were read", d.blocks)
	}
}

// FuzzDecompress: what is decompressed to its end is what compress/flate makes of it, and every level decompresses the same to its end.
func FuzzDecompress(f *testing.F) {
	for _, b := range samples(rand.New(rand.NewPCG(1, 3))) {
		for _, level := range []int{flate.HuffmanOnly, 0, 1, 6, 9} {
			var packed bytes.Buffer
			w, _ := flate.NewWriter(&packed, level)
			_, _ = w.Write(b[:min(len(b), 3000)])
			_ = w.Close()
			f.Add(packed.Bytes())
		}
	}
	levels := decompressors()
	f.Fuzz(func(t *testing.T, src []byte) {
		const most = 1 << 20
		got, ended, position := decompressAll(levels[0], src, most)
		for _, d := range levels[1:] {
			out, e, p := decompressAll(d, src, most)
			if max(len(out), len(got)) < most && (e != ended || ended && (p != position || !bytes.Equal(out, got))) {
				t.Errorf("%d bytes, ended %t at %d; at another level %d, %t at %d", len(got), ended, position, len(out), e, p)
			}
		}
		if !ended {
			return
		}
		r := bytes.NewReader(src)
		want, err := io.ReadAll(flate.NewReader(r))
		if err != nil || !bytes.Equal(got, want) || position != len(src)-r.Len() {
			t.Errorf("%d bytes, compress/flate %d and %v; it ends at %d, there at %d", len(got), len(want), err, position, len(src)-r.Len())
		}
	})
}
