//go:build amd64 && !purego

package png

import (
	"bytes"
	"compress/flate"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
)

// The generator of the assembly has these numbers in its main.go.
func TestAssemblyKnowsTheLayout(t *testing.T) {
	var c codeTables
	e := isTable | 15<<8 | 0x3fff<<14
	for _, v := range []struct {
		name      string
		got, want int
	}{
		{"literalRoot", literalRoot, 12},
		{"distanceRoot", distanceRoot, 9},
		{"lookUps", lookUps, 4},
		{"codeTables.distances", int(unsafe.Offsetof(c.distances) - unsafe.Offsetof(c.literals)), 4 * (1<<literalRoot + 2048)},
		{"the literals of an entry", mostLiterals * int(aLiteral), 3 << 6},
		{"isOther", int(isOther), 1 << 31},
		{"isTable", int(isTable), 1 << 30},
		{"the place of a table", int(e.place()), 0x3fff},
		{"the mask of a table", int(e.mask()), 1<<15 - 1},
	} {
		if v.got != v.want {
			t.Errorf("%s is %d, not %d", v.name, v.got, v.want)
		}
	}
}

// symbolOver is what symbolLoop may write from the limit on.
const symbolOver = 296

// The assembly decodes what the Go code does, reads no byte outside of the data and writes none beyond what it may; and it leaves little to be done.
func TestDecodeAhead(t *testing.T) {
	if len(decompressors()) == 1 {
		t.Skip("no AVX2 here")
	}
	r := rand.New(rand.NewPCG(4, 4))
	for name, sample := range samples(r) {
		for level := flate.HuffmanOnly; level <= flate.BestCompression; level += 1 + r.IntN(2) {
			var b bytes.Buffer
			w, _ := flate.NewWriter(&b, level)
			_, _ = w.Write(sample)
			_ = w.Close()
			for range 4 {
				end := len(sample) - r.IntN(1+min(len(sample), 600))
				if testDecodeAhead(t, b.Bytes(), sample, end); t.Failed() {
					t.Fatalf("%s, level %d, up to byte %d of %d", name, level, end, len(sample))
				}
			}
		}
	}
}

// testDecodeAhead decodes up to byte end.
func testDecodeAhead(t *testing.T, packed, want []byte, end int) {
	src := guardtest.Copy(t, packed)
	window := guardtest.Bytes(t, end+symbolOver)
	p := unsafe.Pointer(unsafe.SliceData(window))
	d := &decompressor{vector: true}
	d.open(src)
	for w := 0; w < end; {
		var err error
		switch d.kind {
		case betweenBlocks:
			err = d.beginBlock()
		case storedBlock:
			w, err = d.copyStored(window, w, end)
		case huffmanBlock:
			ahead := d.decodeAhead(p, w, end)
			isNear := ahead >= end || d.at > len(src)-symbolPad
			if w, err = d.decodeUntil(p, ahead, end); !isNear && (w != ahead || d.kind != betweenBlocks) {
				t.Errorf("the assembly stops at byte %d, and at %d of the data; the block ends at %d", ahead, d.at, w)
			}
		}
		if n := min(w, end); err != nil || !bytes.Equal(window[:n], want[:n]) {
			t.Errorf("before byte %d: %v, or another byte", n, err)
			return
		}
	}
}
