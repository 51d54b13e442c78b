package codec

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/pillowtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// TestMutants damages PNG and WebP files, of Pillow's encoders, of Go's and of the corpus' own, and compares verdicts and pixels with Pillow's, without
// an index and with it. It needs a Python with Pillow 13, which FEEDWATER_PYTHON names; elsewhere TestPillow stands for it. What differs is explained in
// docs/formats.md, or a mistake.
func TestMutants(t *testing.T) {
	interpreter := os.Getenv("FEEDWATER_PYTHON")
	if interpreter == "" {
		return
	}
	for _, format := range []string{"png", "webp"} {
		t.Run(format, func(t *testing.T) {
			m := &mutantRun{format: format, pillow: pillowtest.Start(t, interpreter, strings.ToUpper(format)), bases: mutantBases(t, format)}
			for _, level := range kernel.Levels() {
				m.decoders = append(m.decoders, NewDecoder(level))
			}
			again := "./pipeline/codec -run 'TestMutants$/" + format + "'"
			pillowtest.CompareMutants(t, 500, again, format, func(n uint64) pillowtest.Mutant { return m.compare(t, n) })
		})
	}
}

// What is said of a damaged file does not depend on the files before. The first numbers are of files with a code without symbols, which package flate
// reads by the tables that it had before.
func TestMutantsAfterOthers(t *testing.T) {
	bases := mutantBases(t, "png")
	for _, first := range []uint64{1795916485430840, 1795916485935680, 1, 10_000, 20_000} {
		d := NewDecoder(kernel.Levels()[0])
		for n := first; n < first+400; n++ {
			r := rand.New(rand.NewPCG(n, 10))
			b := mutate(r, "png", bases[r.IntN(len(bases))], bases[r.IntN(len(bases))])
			w, h, pix, err := decode(d, b, mutantLimits(), image.Rectangle{})
			w2, h2, pix2, err2 := decode(NewDecoder(kernel.Levels()[0]), b, mutantLimits(), image.Rectangle{})
			if w != w2 || h != h2 || fmt.Sprint(err) != fmt.Sprint(err2) || !bytes.Equal(pix, pix2) {
				t.Errorf("file %d: %v, and alone %v", n, err, err2)
			}
		}
	}
}

// mutantBases are the whole files of a format.
func mutantBases(t *testing.T, format string) (bases [][]byte) {
	d := NewDecoder(kernel.Scalar)
	whole := archived(t).files
	maps.Copy(whole, encoded(t))
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		if b := whole[name]; !strings.HasPrefix(name, "damaged-") && d.Format(b) == format {
			bases = append(bases, b)
		}
	}
	return bases
}

// mutantRun compares one damaged file of a format after the other.
type mutantRun struct {
	format   string
	pillow   *pillowtest.Process
	bases    [][]byte
	decoders []*Decoder
}

func (m *mutantRun) compare(t *testing.T, n uint64) pillowtest.Mutant {
	r := rand.New(rand.NewPCG(n, 10))
	b := mutate(r, m.format, m.bases[r.IntN(len(m.bases))], m.bases[r.IntN(len(m.bases))])
	m.pillow.Ask(t, b)
	d := m.decoders[r.IntN(len(m.decoders))]
	d.RecordCopies(r.IntN(2) == 0)
	d.UseIndex(nil, 8)
	w, h, pix, err := decode(d, b, mutantLimits(), image.Rectangle{})
	said := m.pillow.Answer(t)
	what := "equal"
	switch {
	case said.Large || known(err):
		what = "over a limit"
	case err != nil && said.Refused != "":
		what = "refused by both"
	case err != nil:
		what = "wrong: refused, and Pillow takes it"
	case said.Refused != "":
		what = "wrong: Pillow says " + said.Refused
	case w != said.W || h != said.H || !bytes.Equal(pix, said.Pix):
		what = fmt.Sprintf("wrong: %d×%d pixels are others than Pillow's %d×%d", w, h, said.W, said.H)
	default:
		if index := d.AppendIndex(nil); len(index) > 0 {
			what = m.compareIndexed(d, r, b, index, said)
		}
	}
	return pillowtest.Mutant{File: b, What: what, Err: err}
}

// compareIndexed compares regions of a file that has an index.
func (m *mutantRun) compareIndexed(d *Decoder, r *rand.Rand, b, index []byte, said pillowtest.Answer) string {
	for range 2 {
		part := randomRegion(r, said.W, said.H)
		d.UseIndex(index, 0)
		if _, _, pix, err := decode(d, b, mutantLimits(), part); err != nil || !bytes.Equal(pix, crop(said.Pix, said.W, part)) {
			return fmt.Sprintf("wrong: region %v differs with its index (%v)", part, err)
		}
	}
	if IsCopy(index) {
		return "equal, with a copy too"
	}
	return "equal, with an index too"
}

// mutantLimits refuse what Pillow is not asked for.
func mutantLimits() Limits {
	l := DefaultLimits()
	l.Pixels = pillowtest.MostPixels
	return l
}

// mutate gives a copy of b with some things wrong. Often checksums of chunks are right all the same.
func mutate(r *rand.Rand, format string, b, other []byte) []byte {
	b = slices.Clone(b)
	if format == "png" && r.IntN(2) == 0 {
		if b = recompress(r, b); r.IntN(2) == 0 {
			return b
		}
	}
	for range 1 + r.IntN(1+r.IntN(4)) {
		if len(b) < 16 {
			break
		}
		b = mutations[r.IntN(len(mutations))](r, b, other)
	}
	if format == "png" && r.IntN(2) == 0 {
		b = repairChecksums(b)
	}
	if format == "webp" && r.IntN(2) == 0 && len(b) >= 12 {
		binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8)) //nolint:gosec // small
	}
	return b
}

// mutations each do one thing to b, which they may change.
var mutations = []func(r *rand.Rand, b, other []byte) []byte{
	func(r *rand.Rand, b, _ []byte) []byte { b[place(r, b)] ^= 1 << r.IntN(8); return b },
	func(r *rand.Rand, b, _ []byte) []byte { b[place(r, b)] ^= 1 << r.IntN(8); return b },
	func(r *rand.Rand, b, _ []byte) []byte {
		b[place(r, b)] = byte(r.IntN(4)*r.IntN(86) - r.IntN(2))
		return b
	},
	func(r *rand.Rand, b, _ []byte) []byte {
		for i, to := stretch(r, b); i < to; i++ {
			b[i] = byte(r.Uint32())
		}
		return b
	},
	func(r *rand.Rand, b, _ []byte) []byte { i, to := stretch(r, b); clear(b[i:to]); return b },
	func(r *rand.Rand, b, _ []byte) []byte { i, to := stretch(r, b); return slices.Delete(b, i, to) },
	func(r *rand.Rand, b, _ []byte) []byte {
		i, to := stretch(r, b)
		return slices.Insert(b, place(r, b), slices.Clone(b[i:to])...)
	},
	func(r *rand.Rand, b, _ []byte) []byte { return b[:len(b)-r.IntN(1+r.IntN(len(b)))] },
	func(r *rand.Rand, b, other []byte) []byte { return append(b[:place(r, b)], other[place(r, other):]...) },
	func(r *rand.Rand, b, other []byte) []byte {
		i, to := stretch(r, other)
		copy(b[place(r, b):], other[i:to])
		return b
	},
}

func place(r *rand.Rand, b []byte) int { return pillowtest.Place(r, b, headBytes) }

func stretch(r *rand.Rand, b []byte) (from, to int) { return pillowtest.Stretch(r, b, headBytes) }

// headBytes is in how many bytes most headers of a small file are.
const headBytes = 100

// recompress changes some bytes of a PNG's rows, compresses them otherwise, and divides the data in other pieces. Where it is not one chunk after the other
// that is left as it is.
func recompress(r *rand.Rand, b []byte) []byte {
	head, data, tail := splitData(b)
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return b
	}
	rows, err := io.ReadAll(z)
	if err != nil || len(rows) == 0 {
		return b
	}
	for range r.IntN(4) {
		rows[r.IntN(len(rows))] = byte(r.IntN(6) * r.IntN(2) * (1 + 50*r.IntN(2)))
	}
	if r.IntN(8) == 0 {
		rows = append(rows, rows[:r.IntN(len(rows))]...)
	}
	var packed bytes.Buffer
	w, _ := zlib.NewWriterLevel(&packed, r.IntN(11)-2) // the levels that there are
	for len(rows) > 0 {
		n := 1 + r.IntN(len(rows))
		_, _ = w.Write(rows[:n]) // to memory
		if rows = rows[n:]; r.IntN(4) == 0 {
			_ = w.Flush()
		}
	}
	_ = w.Close()
	data = packed.Bytes()
	if r.IntN(6) == 0 {
		data = data[:len(data)-r.IntN(min(12, len(data)))]
	}
	for len(data) > 0 {
		n := min(len(data), 1+r.IntN(1+r.IntN(2*len(data))))
		head = appendChunk(head, "IDAT", data[:n])
		data = data[n:]
	}
	return append(head, tail...)
}

// splitData is what comes before the data of a PNG, the data, and what comes behind it.
func splitData(b []byte) (head, data, tail []byte) {
	for at := 8; at+12 <= len(b); {
		end := at + 12 + int(binary.BigEndian.Uint32(b[at:]))
		if end > len(b) {
			break
		}
		if string(b[at+4:at+8]) == "IDAT" {
			if head == nil {
				head = slices.Clone(b[:at])
			}
			data, tail = append(data, b[at+8:end-4]...), b[end:]
		}
		at = end
	}
	return head, data, tail
}

func appendChunk(dst []byte, name string, data []byte) []byte {
	dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(data))), name...) //nolint:gosec // small
	dst = append(dst, data...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[len(dst)-len(data)-4:]))
}

// repairChecksums makes the checksums right of the chunks of a PNG, as far as these follow each other.
func repairChecksums(b []byte) []byte {
	for at := 8; at+12 <= len(b); {
		end := at + 8 + int(binary.BigEndian.Uint32(b[at:]))
		if end+4 > len(b) {
			break
		}
		binary.BigEndian.PutUint32(b[end:], crc32.ChecksumIEEE(b[at+4:end]))
		at = end + 4
	}
	return b
}
