package vp8

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/internal/prefix"
	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// randomResidue is a macroblock with a few coefficients, or many, small ones and large ones.
func randomResidue(r *rand.Rand, byBlocks bool) (res residue) {
	dense, large := r.IntN(40), r.IntN(12)
	for i := range secondBlock + 1 {
		for k := range 16 {
			if r.IntN(40) > dense || byBlocks && i == secondBlock || !byBlocks && i < lumaBlocks && k == 0 {
				continue
			}
			res.coefficients[i][k] = int16(r.IntN(2<<large) - 1<<large)
		}
	}
	return res
}

// writeResidues writes macroblocks as a copy has them, without the factors.
func writeResidues(t *testing.T, all []residue, byBlocks []bool) []byte {
	t.Helper()
	one := &factors{[2]int32{1, 1}, [2]int32{1, 1}, [2]int32{1, 1}}
	c := newCopier()
	for i := range all {
		if !c.count(&modes{byBlocks: byBlocks[i]}, &all[i], one) {
			t.Fatal("a macroblock has no copy")
		}
	}
	c.begin(nil, prefix.Lengths(c.counts[:], copiedCodeBits))
	for i := range all {
		c.write(&modes{byBlocks: byBlocks[i]}, &all[i], one)
	}
	return c.finish()
}

// Whatever coefficients macroblocks have, every level reads what was written, up to the last byte, and nothing behind it.
func TestCopiedCoefficients(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 1))
	levels := []kernels{{kernel.Vector(kernel.Levels()[0])}, {}}
	for range 300 {
		all, byBlocks := make([]residue, 1+r.IntN(12)), make([]bool, 12)
		for i := range all {
			byBlocks[i] = r.IntN(2) == 0
			all[i] = randomResidue(r, byBlocks[i])
		}
		copied := guardtest.Copy(t, writeResidues(t, all, byBlocks))
		for _, k := range levels {
			var c copyReader
			if !c.open(copied) {
				t.Fatal("a copy makes no sense")
			}
			for i, want := range all {
				var m modes
				if !c.readModes(&m) || m.byBlocks != byBlocks[i] {
					t.Fatalf("vector %t: macroblock %d has other modes: %+v", k.vector, i, m)
				}
				var got residue
				k.readCopied(&c, &got, 16*int(number(m.byBlocks)))
				got.coefficients[spareBlock] = [16]int16{}
				if got.coefficients != want.coefficients {
					t.Fatalf("vector %t: macroblock %d of %d has other coefficients", k.vector, i, len(all))
				}
			}
			if c.over() || 8*c.at-c.valid < 8*len(c.data)-8 {
				t.Fatalf("vector %t: %d of %d bits are read", k.vector, 8*c.at-c.valid, 8*len(c.data))
			}
		}
	}
}

// Every level reads data alike that nobody wrote, also behind its end.
func TestCopiedCoefficientsOfNoSense(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 2))
	vector := kernels{kernel.Vector(kernel.Levels()[0])}
	for range 300 {
		counts := make([]int, copySymbols)
		counts[symbolRest], counts[symbolZeros] = 1, 1
		for range r.IntN(300) {
			counts[r.IntN(copySymbols)] = 1 + r.IntN(1<<r.IntN(20))
		}
		lengths := prefix.Lengths(counts, copiedCodeBits)
		c := copier{}
		c.begin(nil, lengths)
		data := make([]byte, r.IntN(9000))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		var a, b copyReader
		copied := append(append(c.dst, 0), data...)
		if !a.open(guardtest.Copy(t, copied)) || !b.open(guardtest.Copy(t, copied)) {
			t.Fatal("a complete code makes no sense")
		}
		for !a.over() {
			var x, y residue
			at := r.IntN(2) * 16
			a.readCoefficients(&x, at)
			vector.readCopied(&b, &y, at)
			if x != y || 8*a.at-a.valid != 8*b.at-b.valid {
				t.Fatal("differs")
			}
		}
	}
}

// A macroblock of a copy that has no coefficients has none, whatever the one before had.
func TestCopiedNone(t *testing.T) {
	data := guardtest.Copy(t, writeResidues(t, []residue{{}}, []bool{true}))
	var c copyReader
	var m modes
	if !c.open(data) || !c.readModes(&m) {
		t.Fatal("a copy makes no sense")
	}
	r := residue{counts: [pixelBlocks]uint8{16, 3}}
	r.coefficients[1][3] = 7
	if c.readResidue(&m, &factors{}, &r, &kernels{}); r.hasMore() || r.kinds() != [pixelBlocks]uint8{} {
		t.Errorf("counts %v, kinds %v", r.counts, r.kinds())
	}
}

// Every level multiplies coefficients alike.
func TestScale(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 3))
	vector := kernels{kernel.Vector(kernel.Levels()[0])}
	for range 3000 {
		a := randomResidue(r, false)
		f := &factors{[2]int32{r.Int32N(600), r.Int32N(600)}, [2]int32{r.Int32N(600), r.Int32N(600)}, [2]int32{r.Int32N(600), r.Int32N(600)}}
		b := a
		a.scale(f)
		vector.scale(&b, f)
		if b.coefficients[spareBlock] = a.coefficients[spareBlock]; a != b {
			t.Fatal("differs")
		}
	}
}

// What the assembly knows of a window is what it is.
func TestCopiedMargin(t *testing.T) {
	most := 0
	for symbol := range uint16(copySymbols) {
		most = max(most, int(entryOf(symbol, copiedCodeBits)&63))
	}
	if need := (coefficientsEnd*most+7)/8 + 8; need > leastForCopied || 2*most > 56 {
		t.Errorf("a macroblock takes %d bytes, two symbols %d bits", need, 2*most)
	}
	if n := bits.Len(uint(coefficientsEnd + coefficientsEnd - 1)); 1<<n > len(copiedPlaces) {
		t.Errorf("%d places, and the last may be of %d bits", len(copiedPlaces), n)
	}
}

// Macroblocks whose coefficients are none that encoders write have no copy: not by their factors, too large, or transformed in another way.
func TestNoCopy(t *testing.T) {
	f := &factors{[2]int32{3, 5}, [2]int32{7, 11}, [2]int32{13, 17}}
	take := func(change func(r *residue)) bool {
		var r residue
		r.coefficients[2] = [16]int16{3, 5, -50}
		r.coefficients[20] = [16]int16{-13, 17}
		change(&r)
		return newCopier().count(&modes{byBlocks: true}, &r, f)
	}
	if !take(func(*residue) {}) {
		t.Error("a usual macroblock has none")
	}
	for name, change := range map[string]func(r *residue){
		"factor":   func(r *residue) { r.coefficients[2][2]++ },
		"chroma":   func(r *residue) { r.coefficients[20][1] = 5 },
		"size":     func(r *residue) { r.coefficients[2][2] = 5 * 4096 },
		"ends on":  func(r *residue) { r.counts[20] = 4 },
		"one none": func(r *residue) { r.counts[7] = 2 },
	} {
		if take(change) {
			t.Errorf("%s: it has one", name)
		}
	}
}

// A code that is not complete, or has too long ones, and modes that are cut or are none, make no sense.
func TestCopyOfNoSense(t *testing.T) {
	good := writeResidues(t, []residue{{}, {}}, []bool{true, false})
	open := func(b []byte) (taken int) {
		var c copyReader
		if !c.open(b) {
			return -1
		}
		var m modes
		for c.readModes(&m) {
			taken++
		}
		return taken
	}
	if n := open(good); n != 2 {
		t.Fatalf("%d macroblocks", n)
	}
	change := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	first := copySymbols / 2
	for name, c := range map[string]struct {
		copied []byte
		taken  int
	}{
		"empty": {nil, -1}, "short": {good[:first-1], -1}, "no modes": {good[:first], -1}, "cut modes": {good[:first+5], -1},
		"code": {change(0, 0), -1}, "many": {change(0, 0xff), -1}, "size": {change(first, 200), -1}, "fewer": {change(first, 5), 0},
		"luma": {change(first+1, 7<<4), 0}, "mode": {change(first+2, 10), 0}, "other mode": {change(first+2, 12<<4), 0},
	} {
		if n := open(c.copied); n != c.taken {
			t.Errorf("%s: %d macroblocks, want %d", name, n, c.taken)
		}
	}
}

// Making a copy takes no memory for pixels, whatever size a picture claims.
func TestCopyMakesNoPlanes(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 5))
	d := NewDecoder(kernel.Levels()[0])
	begun := 0
	for range 100 {
		data := make([]byte, 300)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		const partition = 100
		copy(data, []byte{partition << 5 & 0xff, partition >> 3, 0, 0x9d, 1, 0x2a, 0xff, 0x3f, 0xff, 0x3f})
		if d.begin(data, 16383, 16383) == nil {
			begun++
		}
		if copied := d.AppendCopy(nil, data, 16383, 16383); copied != nil || cap(d.luma.samples)+cap(d.cb.samples)+cap(d.cr.samples) > 0 {
			t.Fatalf("a copy of %d bytes, planes of %d", len(copied), cap(d.luma.samples))
		}
	}
	if begun == 0 {
		t.Error("no headers make sense")
	}
}
