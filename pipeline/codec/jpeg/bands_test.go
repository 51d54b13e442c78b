package jpeg

import (
	"bytes"
	mathbits "math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// bandRow is a row of blocks with a coder at a place of a scan, whose data makes no sense.
type bandRow struct {
	coder  coder
	codes  definition
	blocks []kernel.Block
	left   int
	sent   []uint64
}

// randomBandRow has inaccessible pages behind its data, and behind its blocks or before them. The symbols of an ordinary one are those of real files.
func randomBandRow(t *testing.T, r *rand.Rand, ordinary bool) *bandRow {
	row := &bandRow{coder: coder{scan: &scan{n: 1}}}
	c := &row.coder
	b := &c.scan.band
	b.first = 1 + r.IntN(63)
	b.last = b.first + r.IntN(64-b.first)
	if r.IntN(2) == 0 {
		b.first, b.last = 1, 63
	}
	row.codes, b.low = randomDefinition(r, 256), r.IntN(14)
	if ordinary {
		b.low = r.IntN(4)
		makeOrdinary(r, row.codes[16:])
	}
	kind := kindBand
	if r.IntN(3) > 0 {
		kind, b.high = kindRefine, b.low+1
	}
	c.band.build(row.codes, kind)
	c.fill(r)
	c.segment.data = guardtest.Copy(t, c.segment.data)
	c.ended = max(0, r.IntN(20)-10)
	n := 1 + r.IntN(40)
	out := r.IntN(n + 1)
	row.left = r.IntN(n - out + 1)
	row.blocks = guarded[kernel.Block](t, out, r.IntN(2) == 0)
	row.sent = guarded[uint64](t, n, r.IntN(2) == 0)
	row.fill(r)
	return row
}

// fill takes coefficients that have been sent: few, nearly all, or many in one place.
func (row *bandRow) fill(r *rand.Rand) {
	for i := range row.sent {
		row.sent[i] = r.Uint64() & r.Uint64() & r.Uint64() >> r.IntN(64)
		switch r.IntN(8) {
		case 0:
			row.sent[i] = ^row.sent[i]
		case 1:
			row.sent[i] |= ^uint64(0) >> r.IntN(64) << r.IntN(32)
		}
	}
	for i := range row.blocks {
		for k, at := range zigzag {
			if row.sent[row.left+i]>>k&1 == 1 {
				row.blocks[i][at] = int16(r.Uint32())<<r.IntN(16) | 1<<r.IntN(15)
			}
		}
	}
}

// makeOrdinary makes symbols those of real files: short runs and small values, and a quarter of them ends.
func makeOrdinary(r *rand.Rand, symbols []byte) {
	for i := range symbols {
		symbols[i] = byte(r.IntN(2)*r.IntN(6)<<4 | 1 + r.IntN(2)*r.IntN(3))
		if r.IntN(4) == 0 {
			symbols[i] = byte(r.IntN(2) * r.IntN(4) << 4)
		}
	}
}

// guarded are n zeros that an inaccessible page follows or precedes.
func guarded[E any](t *testing.T, n int, follows bool) []E {
	b := make([]byte, n*int(unsafe.Sizeof(*new(E))))
	if n == 0 {
		return nil
	}
	if follows {
		b = guardtest.Copy(t, b)
	} else {
		b = guardtest.CopyAfter(t, b)
	}
	return unsafe.Slice((*E)(unsafe.Pointer(&b[0])), n)
}

// twin is the same row in memory of its own.
func (row *bandRow) twin() *bandRow {
	other := *row
	other.blocks, other.sent = slices.Clone(row.blocks), slices.Clone(row.sent)
	return &other
}

func (row *bandRow) read() { row.coder.readRow(row.blocks, row.left, row.sent) }

func (row *bandRow) compare(t *testing.T, want *bandRow) {
	t.Helper()
	a, b := &row.coder, &want.coder
	if a.bits.consumed() != b.bits.consumed() || a.ended != b.ended {
		t.Errorf("%+v: at bit %d, %d blocks ended, not %d, %d", a.scan.band, a.bits.consumed(), a.ended, b.bits.consumed(), b.ended)
	}
	if !slices.Equal(row.sent, want.sent) || !slices.Equal(row.blocks, want.blocks) {
		t.Errorf("%+v: other coefficients", a.scan.band)
	}
}

// The bands that are read by assembly are those that Go reads, whatever the tables and the data.
func TestBands(t *testing.T) {
	if !kernel.Vector(kernel.Levels()[0]) {
		t.Skip("this processor has no AVX2")
	}
	for seed := range uint64(4000) {
		got := randomBandRow(t, rand.New(rand.NewPCG(seed, 7)), seed%2 == 0)
		want := got.twin()
		got.coder.vector = true
		got.read()
		want.read()
		if got.compare(t, want); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Bands are what the oracle reads of them, one coefficient after the other.
func TestBandsAsDefined(t *testing.T) {
	for seed := range uint64(4000) {
		row := randomBandRow(t, rand.New(rand.NewPCG(seed, 10)), seed%2 == 0)
		c := &row.coder
		b := c.scan.band
		o := oracle{prog: true, ss: b.first, se: b.last, ah: b.high, al: b.low, eobrun: c.ended, d: append([]byte{0x10}, row.codes...)}
		o.dht(len(o.d))
		o.d, o.p = append(bytes.ReplaceAll(c.segment.data, []byte{0xff}, []byte{0xff, 0}), 0xff, mEOI), 0
		o.get(c.bits.consumed())
		for i := range row.blocks {
			want := [64]int16(row.blocks[i])
			if !c.readBand(&row.blocks[i], &row.sent[row.left+i]) {
				break
			}
			if o.band(&oracleComponent{}, &want); row.blocks[i] != want || c.ended != o.eobrun {
				t.Fatalf("seed %d, block %d, %+v: %v with %d blocks ended, want %v, %d", seed, i, b, row.blocks[i], c.ended, want, o.eobrun)
			}
			for k, at := range zigzag {
				if row.sent[row.left+i]>>k&1 == 1 != (want[at] != 0) && k > 0 {
					t.Fatalf("seed %d, block %d, %+v: coefficient %d is %d but sent %x", seed, i, b, k, want[at], row.sent[row.left+i])
				}
			}
		}
	}
}

// Of files as they are, assembly leaves few blocks to Go.
func TestFewBandsAreLeft(t *testing.T) {
	if !kernel.Vector(kernel.Levels()[0]) {
		t.Skip("this processor has no AVX2")
	}
	d := NewDecoder(kernel.AVX2)
	for quality := 50; quality < 100; quality += 7 {
		o := jpegtest.Options{Progressive: jpegtest.Script(3), Quality: quality}
		if _, _, err := d.Parse(jpegtest.Encode(jpegtest.Photograph(uint64(quality), 5, 300, 200), o), Limits{}); err != nil {
			t.Fatal(err)
		}
		f := &d.parser.frame
		var sent [maxComponents][]uint64
		for i := range f.n {
			sent[i] = make([]uint64, f.comps[i].blocksX*f.comps[i].blocksY)
		}
		for i := range d.parser.scans {
			if s := &d.parser.scans[i]; s.band.first > 0 {
				d.coder.open(d.parser.src, f, s)
				all := sent[s.comps[0].index]
				if left := bandsLeft(t, &d.coder, all); left*5 > len(all) {
					t.Errorf("quality %d, %+v: %d of %d blocks are left to Go", quality, s.band, left, len(all))
				}
			}
		}
	}
}

// bandsLeft reads the bands of blocks and returns how many blocks assembly left.
func bandsLeft(t *testing.T, c *coder, sent []uint64) (left int) {
	for len(sent) > 0 {
		n := c.readBandsVector(nil, sent)
		if sent = sent[n:]; len(sent) == 0 {
			break
		}
		if !c.readBand(nil, &sent[0]) {
			t.Fatal("no data")
		}
		sent = sent[1:]
		left++
	}
	return left
}

// Blocks that out has not take the same bits, and what out has is the same, wherever the row is cut.
func TestRowsInParts(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 8))
		row := randomBandRow(t, r, seed%2 == 0)
		whole := row.twin()
		at := r.IntN(len(row.sent) + 1)
		row.coder.readRow(row.blocks, row.left, row.sent[:at])
		row.coder.readRow(row.blocks, row.left-at, row.sent[at:])
		whole.read()
		if !slices.Equal(row.sent, whole.sent) || !slices.Equal(row.blocks, whole.blocks) {
			t.Fatalf("seed %d: cut at %d of %d, %d of them from %d on: differs", seed, at, len(row.sent), len(row.blocks), row.left)
		}
	}
}

func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for k := range 1000 {
		mask := r.Uint64() &^ (r.Uint64() * uint64(k&1))
		var want []uint8
		for at := range uint8(64) {
			if mask>>at&1 == 1 {
				want = append(want, at)
			}
		}
		for at := range uint8(16) {
			want = append(want, 64+at)
		}
		var got places
		if got.set(mask); !slices.Equal(got[:len(want)], want) {
			t.Fatalf("%x: %v, want %v", mask, got, want)
		}
	}
}

func TestTake(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	data := make([]byte, 100)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	for range 2000 {
		from, n := r.IntN(200), r.UintN(64)
		b := bits{at: from / 8}.refill(data).drop(uint32(from % 8))
		b = b.drop(r.Uint32N(uint32(b.n) + 1))
		at := b.consumed()
		got, b := b.take(data, n)
		var want uint64
		for i := range int(n) {
			want = want<<1 | uint64(data[(at+i)/8]>>(7-(at+i)%8)&1)
		}
		if got != want || b.consumed() != at+int(n) {
			t.Fatalf("%d bits at %d: %x up to %d, want %x", n, at, got, b.consumed(), want)
		}
	}
}

// Corrections change the places they are for, in order, and leave the others alone.
func TestCorrect(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for range 2000 {
		low, places := r.IntN(14), r.Uint64()&^1&(r.Uint64()|-r.Uint64N(2))
		var got, want kernel.Block
		var corrections uint64
		for i := range got {
			got[i] = int16(r.Uint32())
		}
		want = got
		for m := places; m != 0; m &= m - 1 {
			set, v := r.Uint64N(2), &want[zigzag[mathbits.TrailingZeros64(m)]]
			corrections = corrections<<1 | set
			switch step := int16(1) << low; {
			case set == 0 || *v&step != 0:
			case *v < 0:
				*v -= step
			default:
				*v += step
			}
		}
		if correct(&got, places, corrections, low); got != want {
			t.Fatalf("places %x, corrections %x of bit %d: %v, want %v", places, corrections, low, got, want)
		}
	}
}

// A table tells what its kind of scan means, though the one before had the same definition.
func TestBandTableOfAnotherKind(t *testing.T) {
	d := randomDefinition(rand.New(rand.NewPCG(4, 9)), 256)
	var first, refining, used bandTable
	first.build(d, kindBand)
	refining.build(d, kindRefine)
	if first.entries == refining.entries {
		t.Fatal("the definition is the same for both kinds")
	}
	used.build(d, kindBand)
	if used.build(d, kindRefine); used != refining {
		t.Error("a table for refining is that of the first scan")
	}
	if used.build(d, kindBand); used != first {
		t.Error("a table for a first scan is that for refining")
	}
}
