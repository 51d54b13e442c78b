//go:build amd64 && !purego

package jpeg

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// The generator of the assembly has these numbers in its main.go.
func TestAssemblyKnowsTheLayout(t *testing.T) {
	var (
		d dcTable
		a acTable
		l longCodes
		p predictor
		u unit
		b bits
	)
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"acBits", acBits, 11},
		{"fewBits", fewBits, 10},
		{"dcBits", dcBits, 9},
		{"endOfBlock", endOfBlock, 128},
		{"pairLength", pairLength, 22},
		{"dcTable.entries", unsafe.Offsetof(d.entries), 0},
		{"dcTable.long", unsafe.Offsetof(d.long), 4 << dcBits},
		{"acTable.pairs", unsafe.Offsetof(a.pairs), 0},
		{"acTable.entries", unsafe.Offsetof(a.entries), 8 << acBits},
		{"acTable.triples", unsafe.Offsetof(a.triples), 12 << acBits},
		{"acTable.place", unsafe.Offsetof(a.place), 16 << acBits},
		{"acTable.long", unsafe.Offsetof(a.long), 16<<acBits + 256},
		{"longCodes.last", unsafe.Offsetof(l.last), 0},
		{"longCodes.offset", unsafe.Offsetof(l.offset), 68},
		{"longCodes.def", unsafe.Offsetof(l.def), 136},
		{"longCodes.missed", unsafe.Offsetof(l.missed), 416},
		{"predictor.dc", unsafe.Offsetof(p.dc), 0},
		{"predictor.ac", unsafe.Offsetof(p.ac), 8},
		{"predictor.last", unsafe.Offsetof(p.last), 16},
		{"unit.pred", unsafe.Offsetof(u.pred), 0},
		{"unit.cell", unsafe.Offsetof(u.cell), 8},
		{"unit.step", unsafe.Offsetof(u.step), 16},
		{"unit", unsafe.Sizeof(u), 64},
		{"bits.acc", unsafe.Offsetof(b.acc), 0},
		{"bits.n", unsafe.Offsetof(b.n), 8},
		{"bits.at", unsafe.Offsetof(b.at), 16},
		{"places", unsafe.Sizeof(places{}), 80},
		{"bytePlaces", unsafe.Sizeof(bytePlaces[0]), 8},
		{"Block", unsafe.Sizeof(kernel.Block{}), 128},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d, not %d", c.name, c.got, c.want)
		}
	}
}

// randomLane is a lane of some units with tables of its own, at the start of data without sense.
func randomLane(r *rand.Rand, width int) *lane {
	l, dc, ac := &lane{width: width}, new([2]dcTable), new([2]acTable)
	for i := range 2 {
		dc[i].build(randomDefinition(r, 16))
		ac[i].build(randomDefinition(r, 256), width, false)
		ac[i].ready(false)
	}
	for i := range l.preds {
		l.preds[i] = predictor{dc: &dc[i&1], ac: &ac[i&1], last: int32(r.IntN(4096) - 2048)}
	}
	for i := range 1 + r.IntN(maxBlocks) {
		l.units = append(l.units, unit{pred: &l.preds[i%3], cell: l.cells, step: 1})
		l.cells += runLength
	}
	l.fill(r)
	return l
}

// twin is the same lane for the other way to read, or of other data.
func (l *lane) twin() *lane {
	t := *l
	t.units = append([]unit(nil), l.units...)
	for i := range t.units {
		t.units[i].pred = &t.preds[i%3]
	}
	return &t
}

// missed tells in which tables codes were missed since the last call.
func (l *lane) missed() (m [4]bool) {
	for i := range 2 {
		dc, ac := &l.preds[i].dc.long.missed, &l.preds[i].ac.long.missed
		m[i], m[2+i] = *dc, *ac
		*dc, *ac = false, false
	}
	return m
}

func (l *lane) compare(t *testing.T, other *lane) {
	t.Helper()
	if l.bits.consumed() != other.bits.consumed() || l.preds != other.preds {
		t.Fatalf("at bit %d with %v, not %d with %v", l.bits.consumed(), l.preds, other.bits.consumed(), other.preds)
	}
}

// What is read by assembly is what Go reads, whatever the tables and the data.
func TestLanes(t *testing.T) {
	if !kernel.Vector(kernel.Levels()[0]) {
		t.Skip("this processor has no AVX2")
	}
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		one := randomLane(r, widths[seed%2])
		two := one.twin()
		two.fill(r)
		for range 4 {
			one.bits = one.bits.drop(uint32(r.IntN(int(one.bits.n)))) // a lane may have few bits, or none
			m := r.IntN(runLength)
			compareReads(t, one, m, 1+r.IntN(runLength-m))
			if one.width == acBits {
				compareBoth(t, one, two, 1+r.IntN(runLength))
			}
			compareSkips(t, one, r.IntN(30))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// The tables are made of their entries and of nothing beside them, and nothing beside them is written.
func TestTablesInBounds(t *testing.T) {
	if !kernel.Vector(kernel.Levels()[0]) {
		t.Skip("this processor has no AVX2")
	}
	for _, c := range []struct {
		width                int
		setPairs, setTriples func(entries, to *uint32)
	}{{acBits, setPairs11, setTriples11}, {fewBits, setPairs10, setTriples10}} {
		var table acTable
		table.build(randomDefinition(rand.New(rand.NewPCG(1, 9)), 256), c.width, false)
		table.ready(false)
		n := 1 << c.width
		entries := unsafe.Slice((*byte)(unsafe.Pointer(&table.entries)), 4*n)
		for _, guard := range []func(testing.TB, []byte) []byte{guardtest.Copy, guardtest.CopyAfter} {
			from := (*uint32)(unsafe.Pointer(&guard(t, entries)[0]))
			pairs, triples := guard(t, make([]byte, 8*n)), guard(t, make([]byte, 4*n))
			c.setPairs(from, (*uint32)(unsafe.Pointer(&pairs[0])))
			c.setTriples(from, (*uint32)(unsafe.Pointer(&triples[0])))
			if !slices.Equal(unsafe.Slice((*pair)(unsafe.Pointer(&pairs[0])), n), table.pairs[:n]) ||
				!slices.Equal(unsafe.Slice((*triple)(unsafe.Pointer(&triples[0])), n), table.triples[:n]) {
				t.Errorf("other tables of %d bits", c.width)
			}
		}
	}
}

// Lanes read nothing in front of their data, nor behind the largest MCU's padding.
func TestLanesInBounds(t *testing.T) {
	if !kernel.Vector(kernel.Levels()[0]) {
		t.Skip("this processor has no AVX2")
	}
	var out, others cells
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 10))
		l := randomLane(r, widths[seed%2])
		reads := []func(l *lane){
			func(l *lane) { l.readVector(out[:], 0, runLength) },
			func(l *lane) { l.skipVector(1000) },
		}
		if l.width == acBits {
			reads = append(reads, func(l *lane) { readBothVector(l, l.twin(), out[:], others[:], runLength) })
		}
		for _, guard := range []func(testing.TB, []byte) []byte{guardtest.Copy, guardtest.CopyAfter} {
			l.segment.data = guard(t, l.segment.data)
			for _, read := range reads {
				twin := l.twin()
				twin.bits = bits{}
				for before := -1; twin.bits.consumed() <= twin.segment.bits && twin.bits.consumed() != before; {
					before = twin.bits.consumed()
					read(twin)
				}
				read(twin) // beyond the end
			}
		}
	}
}

// The vectors make the tables that Go makes.
func TestPairs(t *testing.T) {
	if !kernel.Vector(kernel.Levels()[0]) {
		t.Skip("this processor has no AVX2")
	}
	for seed := range uint64(300) {
		var got, want acTable
		d := randomDefinition(rand.New(rand.NewPCG(seed, 6)), 256)
		got.build(d, widths[seed%2], true)
		want.build(d, widths[seed%2], false)
		got.ready(true)
		want.ready(false)
		if got != want {
			t.Fatalf("seed %d: other tables", seed)
		}
	}
}

type cells [maxBlocks * runLength]kernel.Block

func compareReads(t *testing.T, l *lane, m, n int) {
	t.Helper()
	var got, want cells
	other := l.twin()
	l.missed()
	a := other.readScalar(want[:], m, n)
	missed := l.missed()
	if b := l.readVector(got[:], m, n); a != b || got != want {
		t.Fatalf("%d MCUs, not %d, or other blocks", b, a)
	}
	if now := l.missed(); now != missed {
		t.Fatalf("codes missed in tables: %v, not %v", now, missed)
	}
	l.compare(t, other)
}

func compareBoth(t *testing.T, one, two *lane, n int) {
	t.Helper()
	var got, others, want, wantOthers cells
	a, b := one.twin(), two.twin()
	done := readBothVector(one, two, got[:], others[:], n)
	if x, y := a.readScalar(want[:], 0, done), b.readScalar(wantOthers[:], 0, done); x != done || y != done {
		t.Fatalf("%d MCUs where %d and %d have data", done, x, y)
	}
	if done < n && a.readScalar(want[:], done, 1) == 1 && b.readScalar(wantOthers[:], done, 1) == 1 {
		t.Fatalf("only %d MCUs", done)
	}
	if done == n && (got != want || others != wantOthers) {
		t.Fatal("other blocks")
	}
	if done == n {
		one.compare(t, a)
		two.compare(t, b)
	}
}

func compareSkips(t *testing.T, l *lane, n int) {
	t.Helper()
	other := l.twin()
	if a, b := other.skipScalar(n), l.skipVector(n); a != b {
		t.Fatalf("%d MCUs skipped, not %d", b, a)
	}
	l.compare(t, other)
}
