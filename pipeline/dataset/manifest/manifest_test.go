package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// list is what a manifest is made of.
type list struct {
	form    Form
	classes []int // samples of each
	objects []Object
	samples []Sample
}

// encode makes a manifest.
func (l *list) encode(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	b := NewBuilder(&out, l.form, "/root", 1)
	b.Watch("", store.Attributes{Modified: math.MinInt64, Changed: math.MaxInt64, Inode: math.MaxUint64})
	for i := range l.form.Values() {
		b.Value(fmt.Sprint("value", i))
	}
	for i, o := range l.objects {
		if got := b.Object(string(o.Name), store.Attributes{Size: o.Size, Modified: o.ModifiedNanos, Version: string(o.Version)}); got != i {
			t.Fatalf("object %d is number %d", i, got)
		}
	}
	next := 0
	for i, n := range l.classes {
		b.Class(fmt.Sprint("class", i), n, [32]byte{byte(i)})
		if l.form&Labelled == 0 {
			for _, s := range l.samples[next : next+n] {
				treetest.Must(t, b.Sample(&s))
			}
			next += n
		}
	}
	for _, s := range l.samples[next:] {
		treetest.Must(t, b.Sample(&s))
	}
	treetest.Must(t, b.Finish())
	return out.Bytes()
}

// read is what a manifest says, without its numbers.
func read(t testing.TB, data []byte) *list {
	t.Helper()
	m, err := Parse(data)
	treetest.Must(t, err)
	l := &list{form: m.Form()}
	for _, c := range m.Classes() {
		l.classes = append(l.classes, c.Samples)
	}
	for i := range m.Objects() {
		l.objects = append(l.objects, m.Object(i))
	}
	for i := range m.Samples() {
		s, err := m.At(i, nil)
		treetest.Must(t, err)
		l.samples = append(l.samples, s)
	}
	return l
}

// lists are of each form, with few samples and with several chunks.
func lists() []*list {
	var all []*list
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 2, 16, 17, 127, 128, 129, 1000, perChunk + 129} {
		for _, form := range []Form{0, Labelled, Members, Members | Labelled, Versioned, Versioned | Labelled, Versioned | Members, Labelled.WithValues(2), (Members | Labelled).WithValues(3), (Members | Labelled | Held).WithValues(2)} {
			if n <= 1000 || form == Members|Labelled {
				all = append(all, random(r, form, n))
			}
		}
	}
	return all
}

func random(r *rand.Rand, form Form, n int) *list {
	l := &list{form: form, classes: []int{n / 3, 0, n - n/3}}
	if form&Members != 0 {
		l.objects = []Object{{Name: []byte("x.tar"), Size: math.MaxInt64, ModifiedNanos: 5}, {Name: []byte("deep/y.tar"), Size: 1 << 40, ModifiedNanos: math.MinInt64}}
		if form&Versioned != 0 {
			l.objects = []Object{{Name: []byte("x.tar"), Size: 9 << 40, Version: []byte("v1")}, {Name: []byte("y.tar"), Size: 1 << 40, Version: []byte("v2")}}
		}
	}
	for i := range n {
		s := Sample{Key: fmt.Appendf(nil, "n%03d/%s_%d.jpg", i%7, strings.Repeat("k", r.IntN(9)), i), Size: r.Int64N(1 << 20)}
		switch {
		case form&Labelled != 0:
			s.Label = int64(r.IntN(3))
		case i >= n/3:
			s.Label = 2
		}
		switch {
		case form&Members != 0:
			s.Object, s.Offset = r.IntN(2), r.Int64N(1<<39)
		case form&Versioned != 0:
			s.Version = fmt.Appendf(nil, "%x", r.Uint64())
		default:
			s.ModifiedNanos = r.Int64() - r.Int64()
		}
		for range form.Values() {
			v := SampleValue{Size: r.Int64N(50), Offset: r.Int64N(1 << 39)}
			if form.HoldsValues() {
				v.Offset, v.Data = 0, []byte(strings.Repeat("v", int(v.Size)))
			}
			s.Values = append(s.Values, v)
		}
		l.samples = append(l.samples, s)
	}
	return l
}

func TestManifestSaysWhatItWasMadeOf(t *testing.T) {
	for _, want := range lists() {
		got := read(t, want.encode(t))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("form %d, %d samples: another list", want.form, len(want.samples))
		}
	}
}

// TestIdentity: whatever nodes have to agree on is in the fingerprint, and nothing else is.
func TestIdentity(t *testing.T) {
	print := func(change func(*list)) string {
		l := random(rand.New(rand.NewPCG(1, 1)), Labelled|Members, 300)
		change(l)
		m, err := Parse(l.encode(t))
		treetest.Must(t, err)
		return string(m.Fingerprint())
	}
	plain := print(func(*list) {})
	for name, change := range map[string]func(*list){
		"label": func(l *list) { l.samples[7].Label ^= 1 }, "size": func(l *list) { l.samples[299].Size++ }, "key": func(l *list) { l.samples[0].Key[3] = 'x' },
		"order": func(l *list) { l.samples[4], l.samples[5] = l.samples[5], l.samples[4] }, "sample": func(l *list) { l.samples = l.samples[:299] },
		"class": func(l *list) { l.classes = append(l.classes, 0) },
	} {
		if print(change) == plain {
			t.Errorf("with another %s the fingerprint is the same", name)
		}
	}
	for name, change := range map[string]func(*list){
		"offset": func(l *list) { l.samples[7].Offset++ }, "version": func(l *list) { l.objects[0].ModifiedNanos++ },
	} {
		if print(change) != plain {
			t.Errorf("with another %s the fingerprint differs: copies of the same data must not", name)
		}
	}
}

// TestIdentityOfValues: names, sizes and what a manifest holds of values are part of the fingerprint; where they lie is not.
func TestIdentityOfValues(t *testing.T) {
	print := func(form Form, change func(*list)) string {
		l := random(rand.New(rand.NewPCG(1, 1)), form, 300)
		change(l)
		m, err := Parse(l.encode(t))
		treetest.Must(t, err)
		return string(m.Fingerprint())
	}
	none := func(*list) {}
	inline, members := Labelled.WithValues(1), (Members | Labelled).WithValues(1)
	if print(inline, none) == print(inline, func(l *list) { l.samples[7].Values[0].Data[0] = 'x' }) {
		t.Error("with other bytes of a value the fingerprint is the same")
	}
	if print(members, none) == print(members, func(l *list) { l.samples[7].Values[0].Size++ }) {
		t.Error("with another size of a value the fingerprint is the same")
	}
	if print(members, none) != print(members, func(l *list) { l.samples[7].Values[0].Offset++ }) {
		t.Error("with another offset of a value the fingerprint differs")
	}
}

// sealed puts right checksums on a damaged manifest, so that the rest of the reader has to notice.
func sealed(data []byte) []byte {
	data = slices.Clone(data)
	if len(data) < MinBytes {
		return data
	}
	foot := data[len(data)-footBytes:]
	tables := min(u64(foot, 2*sha256.Size), uint64(len(data)-footBytes))
	for at := uint64(len(magic)); at+pageHead < tables; {
		n := uint64(binary.LittleEndian.Uint32(data[at+4:]))
		if n < pageHead || at+n > tables {
			break
		}
		binary.LittleEndian.PutUint32(data[at:], checksum(0, data[at+4:at+n]))
		at += n
	}
	binary.LittleEndian.PutUint32(foot[footBytes-4:], checksum(checksum(0, data[tables:len(data)-footBytes]), foot[:footBytes-4]))
	return data
}

// readAll reads what a manifest says, in every way there is, and returns the samples that it has read, nil for one
// that is damaged. Errors are fine, but each must say that the manifest is damaged.
func readAll(t testing.TB, data []byte) (all []*Sample) {
	t.Helper()
	m, err := Parse(data)
	if err != nil {
		if !errors.Is(err, ErrDamaged) {
			t.Fatalf("%v, want %v", err, ErrDamaged)
		}
		return nil
	}
	classes := m.Classes()
	_ = m.Root()
	for i := range m.Watches() {
		m.Watched(i)
	}
	if _, err := m.AppendKeys(nil); err != nil && !errors.Is(err, ErrDamaged) {
		t.Fatalf("%v, want %v", err, ErrDamaged)
	}
	for i := range min(m.Samples(), 4096) {
		s, err := m.At(i, nil)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("sample %d: %v, want %v", i, err, ErrDamaged)
			}
			all = append(all, nil)
			continue
		}
		all = append(all, &s)
		ours := len(classes) == 0 && m.Form()&Labelled != 0 || s.Label >= 0 && s.Label < int64(len(classes))
		if !ours || s.Size < 0 || len(s.Key) > MaxKeyBytes || !isLocal(s.Key) {
			t.Fatalf("sample %d of a damaged manifest is %+v", i, s)
		}
		if m.Form()&Members != 0 && s.Offset+s.Size > m.Object(s.Object).Size {
			t.Fatalf("sample %d of a damaged manifest lies at %d of %+v", i, s.Offset, m.Object(s.Object))
		}
	}
	return all
}

func seeds(t testing.TB) (all [][]byte) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, form := range []Form{0, Labelled, Members, Members | Labelled, Versioned, Versioned | Labelled, Versioned | Members, Labelled.WithValues(2), (Members | Labelled).WithValues(3), (Members | Labelled | Held).WithValues(2)} {
		all = append(all, random(r, form, 3).encode(t), random(r, form, 20).encode(t), random(r, form, 300).encode(t))
	}
	return all
}

// TestDamagedManifests changes every byte and cuts at every length, with the old checksums and with right ones. With
// the old ones no sample is read that was not there.
func TestDamagedManifests(t *testing.T) {
	for _, data := range seeds(t) {
		if len(data) > 2000 {
			continue
		}
		good := readAll(t, data)
		for i := range data {
			for _, flip := range []byte{0x01, 0x80, 0xff} {
				damaged := slices.Clone(data)
				damaged[i] ^= flip
				for k, s := range readAll(t, damaged) {
					if s != nil && !reflect.DeepEqual(s, good[k]) {
						t.Fatalf("byte %d changed: sample %d is %+v, was %+v", i, k, s, good[k])
					}
				}
				readAll(t, sealed(damaged))
			}
			if _, err := Parse(data[:i]); !errors.Is(err, ErrDamaged) {
				t.Fatalf("cut at %d: %v, want %v", i, err, ErrDamaged)
			}
			readAll(t, sealed(data[:i]))
		}
	}
}

func FuzzManifest(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		readAll(t, data)
		readAll(t, sealed(data))
		for form := range Versioned << 1 {
			readAll(t, framed(form, data))
			readAll(t, framed(form.WithValues(2), data))
		}
	})
}

// framed is a manifest whose tables are right and whose pages are anything.
func framed(form Form, blocks []byte) []byte {
	var out bytes.Buffer
	b := NewBuilder(&out, form, "/", 0)
	b.Object("x", store.Attributes{Size: 1 << 20})
	for i := range form.Values() {
		b.Value(fmt.Sprint("value", i))
		b.values[i].Most = 1
	}
	b.samples = 100
	b.Class("a", 0, [32]byte{})
	b.classes = nil
	b.samples = 0
	b.Class("a", 7, [32]byte{})
	b.samples = 7
	b.Class("b", 93, [32]byte{})
	b.samples = 100
	b.page.count, b.page.samples = 100, blocks
	for i := range b.page.restarts {
		b.page.restarts[i] = uint32(i * len(blocks) / 6)
	}
	if b.Finish() != nil {
		panic("a buffer takes everything")
	}
	return out.Bytes()
}

// TestHostileTables: with right checksums, and still no sense.
func TestHostileTables(t *testing.T) {
	for name, spoil := range map[string]func(*Builder){
		"no classes":              func(b *Builder) { b.classes = nil },
		"classes go back":         func(b *Builder) { copy(b.classes[16:], appendNumbers(nil, 2)) },
		"class behind the end":    func(b *Builder) { copy(b.classes[24:], appendNumbers(nil, 4)) },
		"samples without a class": func(b *Builder) { copy(b.classes[24:], appendNumbers(nil, 2)) },
		"names that are not there": func(b *Builder) {
			copy(b.watched[8:], appendNumbers(nil, uint64(len(b.names))+1))
		},
		"names that go back":     func(b *Builder) { copy(b.watched, appendNumbers(nil, 9, 8)) },
		"a root without a name":  func(b *Builder) { b.root = len(b.names) + 1 },
		"an object elsewhere":    func(b *Builder) { b.Object("../x", store.Attributes{Size: 1}) },
		"an object of no size":   func(b *Builder) { b.Object("x", store.Attributes{Size: -1}) },
		"a form of another year": func(b *Builder) { b.form = Held << 1 },
		"a version that is not there": func(b *Builder) {
			b.form = Versioned
			b.objects.add(0, 5, 1, uint64(len(b.names))+1)
		},
		"a version that goes back": func(b *Builder) {
			b.form = Versioned
			b.objects.add(0, 5, 1, 4)
		},
	} {
		if _, err := Parse(small(t, spoil)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want %v", name, err, ErrDamaged)
		}
	}
	if _, err := Parse(small(t, func(*Builder) {})); err != nil {
		t.Errorf("the unspoilt manifest: %v", err)
	}
}

// small has three samples in one class.
func small(t *testing.T, spoil func(*Builder)) []byte {
	var out bytes.Buffer
	b := NewBuilder(&out, 0, "/root", 0)
	b.Watch("", store.Attributes{})
	b.Class("a", 3, [32]byte{})
	for i := range 3 {
		treetest.Must(t, b.Sample(&Sample{Key: fmt.Appendf(nil, "a/%d", i)}))
	}
	spoil(b)
	treetest.Must(t, b.Finish())
	return out.Bytes()
}

// TestHostilePages: a sample must not lead out of the root, nor be made of what lay in the buffer.
func TestHostilePages(t *testing.T) {
	sample := func(form Form, s Sample) []byte {
		var p pageBuilder
		p.add(form, &s)
		return p.samples
	}
	file := func(key string, size int64) []byte { return sample(0, Sample{Key: []byte(key), Size: size}) }
	member := func(object int, offset, size int64) []byte {
		return sample(Members, Sample{Key: []byte("x/y"), Object: object, Offset: offset, Size: size})
	}
	for name, c := range map[string]struct {
		form  Form
		block []byte
	}{
		"up": {0, file("../../etc/passwd", 1)}, "absolute": {0, file("/etc/passwd", 1)}, "up inside": {0, file("a/../../x", 1)},
		"zero": {0, file("a/x\x00y", 1)}, "empty": {0, file("", 1)}, "two slashes": {0, file("a//b", 1)}, "dot": {0, file("a/.", 1)},
		"negative size": {0, file("a/x", -1)}, "too long": {0, file(strings.Repeat("x", MaxKeyBytes+1), 1)},
		"shares with nothing": {0, []byte{3, 1, 'x', 0, 0}}, "longer than the page": {0, []byte{0, 9, 'x', 0, 0}}, "no time": {0, []byte{0, 1, 'x', 0}},
		"no end": {0, []byte{0, 1, 'x', 0x80}}, "nothing": {0, nil}, "label of no class": {Labelled, sample(Labelled, Sample{Key: []byte("x"), Label: 2})},
		"label below": {Labelled, sample(Labelled, Sample{Key: []byte("x"), Label: -1})}, "no object": {Members, member(1, 0, 0)},
		"object below": {Members, member(-1, 0, 0)}, "behind the object": {Members, member(0, 1<<20, 1)}, "before the object": {Members, member(0, -1, 1)},
		"value behind the object": {Members.WithValues(1), append(member(0, 0, 1), binary.AppendUvarint(binary.AppendVarint(nil, 1<<20), 1)...)},
		"value before the object": {Members.WithValues(1), append(member(0, 0, 1), binary.AppendUvarint(binary.AppendVarint(nil, -1), 1)...)},
		"value of no bytes":       {Labelled.WithValues(1), append(sample(Labelled, Sample{Key: []byte("x")}), 9, 'x')},
		"no value":                {Labelled.WithValues(1), sample(Labelled, Sample{Key: []byte("x")})},
		"value larger than any":   {Labelled.WithValues(1), append(sample(Labelled, Sample{Key: []byte("x")}), 2, 'x', 'y')},
		"so long that it wraps":   {Members, member(0, 1, math.MaxInt64)}, "no offset": {Members, []byte{0, 1, 'x', 0, 0}},
	} {
		m, err := Parse(framed(c.form, c.block))
		treetest.Must(t, err)
		buf := []byte("what lies in the buffer")
		if got, err := m.At(0, append(buf, make([]byte, 2*MaxKeyBytes)...)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, sample %.20q, want %v", name, err, got.Key, ErrDamaged)
		}
	}
}

// TestExtremes: numbers and names at the ends of their ranges survive.
func TestExtremes(t *testing.T) {
	l := &list{classes: []int{4}, samples: []Sample{
		{Key: []byte("c/a"), ModifiedNanos: math.MinInt64}, {Key: []byte("c/b"), Size: math.MaxInt64, ModifiedNanos: math.MaxInt64},
		{Key: []byte("c/b"), Size: 1, ModifiedNanos: -1}, {Key: []byte(strings.Repeat("n", MaxKeyBytes)), Size: 1 << 40, ModifiedNanos: math.MinInt64},
	}}
	if got := read(t, l.encode(t)); !reflect.DeepEqual(got, l) {
		t.Errorf("%+v, want %+v", got, l)
	}
	l = &list{form: Labelled, samples: []Sample{{Key: []byte("a"), Label: math.MinInt64}, {Key: []byte("b"), Label: math.MaxInt64}, {Key: []byte("c"), Label: -1}}}
	if got := read(t, l.encode(t)); !reflect.DeepEqual(got, l) {
		t.Errorf("%+v, want %+v", got, l)
	}
	m, err := Parse(l.encode(t))
	treetest.Must(t, err)
	if path, a := m.Watched(0); path != "" || a != (store.Attributes{Modified: math.MinInt64, Changed: math.MaxInt64, Inode: math.MaxUint64}) {
		t.Errorf("%q is %+v", path, a)
	}
}

// TestBuilderRefuses: a key that could not be read again, and an error of the writer.
func TestBuilderRefuses(t *testing.T) {
	b := NewBuilder(&bytes.Buffer{}, 0, "/", 0)
	if err := b.Sample(&Sample{Key: make([]byte, MaxKeyBytes+1)}); err == nil {
		t.Error("a key of 4,096 bytes was taken")
	}
	full := errors.New("full")
	b = NewBuilder(failing{full}, Labelled, "/", 0)
	var err error
	for i := 0; err == nil && i < 1e6; i++ {
		err = b.Sample(&Sample{Key: []byte("x")})
	}
	if !errors.Is(err, full) || !errors.Is(b.Finish(), full) {
		t.Errorf("%v, want %v", err, full)
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }

func TestSame(t *testing.T) {
	l := random(rand.New(rand.NewPCG(1, 1)), 0, 300)
	parsed := func() *Manifest {
		m, err := Parse(l.encode(t))
		treetest.Must(t, err)
		return m
	}
	first := parsed()
	binary.LittleEndian.PutUint64(first.foot[scannedAt:], 99)
	if !first.Same(parsed()) {
		t.Error("a list made at another time is not the same")
	}
	l.samples[299].ModifiedNanos++
	if first.Same(parsed()) {
		t.Error("a list with another time of a file is the same")
	}
}
