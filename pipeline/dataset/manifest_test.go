package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// encoded is the manifest of a tree.
func encoded(t testing.TB, root string) []byte {
	t.Helper()
	r, err := openRoot(root, "")
	must(t, err)
	defer func() { must(t, r.close()) }()
	data, err := scan(context.Background(), r, root, Options{}.withDefaults())
	must(t, err)
	return data
}

// sealed puts the right checksum on a damaged manifest, so that the rest of the reader has to notice.
func sealed(data []byte) []byte {
	if len(data) < checksumBytes {
		return data
	}
	body := data[:len(data)-checksumBytes]
	return binary.LittleEndian.AppendUint32(slices.Clone(body), checksum(body))
}

// readAll reads what a manifest says, in every way there is. Errors are fine, but each must say that the manifest is damaged.
func readAll(t testing.TB, data []byte) {
	t.Helper()
	m, err := parse(data)
	if err != nil {
		if !errors.Is(err, errDamaged) {
			t.Fatalf("%v, want %v", err, errDamaged)
		}
		return
	}
	classes := m.classList()
	_ = m.root()
	for i := range m.dirs() {
		m.directory(i)
	}
	buf := make([]byte, 0, maxKeyBytes)
	for i := range min(m.samples, 4096) {
		sample, err := m.at(i, buf)
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Fatalf("sample %d: %v, want %v", i, err, errDamaged)
			}
			continue
		}
		if sample.Label < 0 || sample.Label >= len(classes) || sample.Size < 0 || len(sample.Key) > maxKeyBytes || !isLocal(sample.Key) {
			t.Fatalf("sample %d of a damaged manifest is %+v", i, sample)
		}
	}
}

func seeds(t testing.TB) [][]byte {
	var wide []string
	for i := range 70 {
		wide = append(wide, "class/"+strings.Repeat("0", i)+".jpg")
	}
	return [][]byte{
		encoded(t, grow(t, t.TempDir(), "a/x.jpg")),
		encoded(t, grow(t, t.TempDir(), "a/x.jpg", "a/b/y.jpg", "c/z.png", "d/x.jpg")),
		encoded(t, grow(t, t.TempDir(), wide...)),
	}
}

// TestDamagedManifests changes every byte and cuts at every length, with the old checksum and with the right one.
func TestDamagedManifests(t *testing.T) {
	for _, data := range seeds(t)[:2] {
		for i := range data {
			for _, flip := range []byte{0x01, 0x80, 0xff} {
				damaged := slices.Clone(data)
				damaged[i] ^= flip
				if _, err := parse(damaged); !errors.Is(err, errDamaged) {
					t.Fatalf("byte %d changed: %v, want %v", i, err, errDamaged)
				}
				readAll(t, sealed(damaged))
			}
			if _, err := parse(data[:i]); !errors.Is(err, errDamaged) {
				t.Fatalf("cut at %d: %v, want %v", i, err, errDamaged)
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
		readAll(t, framed(data))
	})
}

// framed is a manifest whose tables are right and whose blocks are anything.
func framed(blocks []byte) []byte {
	b := newBuilder(0)
	b.directory("/", attributes{})
	b.directory("a", attributes{})
	b.classes = []classRecord{{directory: 1}, {first: 7, directory: 1}}
	b.samples = 3 * perBlock
	b.out = append(b.out, blocks...)
	b.index = []uint64{0, uint64(len(blocks) / 2), uint64(len(blocks))}
	return b.manifest()
}

// TestHostileManifests: with a right checksum, and still no sense.
func TestHostileManifests(t *testing.T) {
	for name, spoil := range map[string]func(*builder){
		"no directories":              func(b *builder) { b.directories, b.names = nil, nil },
		"no classes":                  func(b *builder) { b.classes = nil },
		"begins behind the start":     func(b *builder) { b.classes[0].first = 1 },
		"classes go back":             func(b *builder) { b.classes = append(b.classes, classRecord{first: 2}, classRecord{first: 1}) },
		"class behind the end":        func(b *builder) { b.classes = append(b.classes, classRecord{first: 4}) },
		"class without a directory":   func(b *builder) { b.classes[0].directory = 2 },
		"names that are not there":    func(b *builder) { b.directories[directoryBytes] = 9 },
		"names that go back":          func(b *builder) { b.directories[directoryBytes] = 1 },
		"something behind the tables": func(b *builder) { b.names = b.names[:len(b.names)-1]; b.directories[directoryBytes]-- },
	} {
		b := small()
		spoil(b)
		data := b.manifest()
		if name == "something behind the tables" {
			data = sealed(append(data, 0))
		}
		if _, err := parse(data); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v, want %v", name, err, errDamaged)
		}
	}
	if _, err := parse(small().manifest()); err != nil {
		t.Errorf("the unspoilt manifest: %v", err)
	}
}

// small has three samples in the class "a".
func small() *builder {
	b := newBuilder(0)
	b.directory("/root", attributes{})
	f := &folder{path: "a", names: []byte("123")}
	for i := range uint32(3) {
		f.pictures = append(f.pictures, picture{start: i, end: i + 1})
	}
	b.class(&classScan{name: "a", folders: []*folder{f}})
	return b
}

// TestHostileBlocks: a sample must not lead out of the root, nor be made of what lay in the buffer.
func TestHostileBlocks(t *testing.T) {
	sample := func(key string, size int64) []byte {
		b := newBuilder(0)
		b.next = []byte(key)
		b.sample(picture{size: size})
		return b.out[headerBytes:]
	}
	for name, block := range map[string][]byte{
		"up": sample("../../etc/passwd", 1), "absolute": sample("/etc/passwd", 1), "up inside": sample("a/../../x", 1), "zero": sample("a/x\x00y", 1),
		"empty": sample("", 1), "two slashes": sample("a//b", 1), "dot": sample("a/.", 1), "negative size": sample("a/x", -1),
		"too long": sample(strings.Repeat("x", maxKeyBytes+1), 1), "shares with nothing": {3, 1, 'x', 0, 0}, "longer than the block": {0, 9, 'x', 0, 0},
		"no time": {0, 1, 'x', 0}, "no end": {0, 1, 'x', 0x80}, "nothing": {},
	} {
		m, err := parse(framed(block))
		must(t, err)
		buf := []byte("what lies in the buffer")
		if got, err := m.at(0, append(buf, make([]byte, 2*maxKeyBytes)...)); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v, sample %.20q, want %v", name, err, got.Key, errDamaged)
		}
	}
}

// TestExtremes: numbers and names at the ends of their ranges survive.
func TestExtremes(t *testing.T) {
	long := strings.Repeat("n", 255)
	deep := "c" + strings.Repeat("/"+long, 15)
	pictures := []struct {
		name           string
		size, modified int64
	}{
		{"a", 0, math.MinInt64}, {"b", math.MaxInt64, math.MaxInt64}, {"b", 1, -1}, {long[:maxKeyBytes-len(deep)-1], 1 << 40, math.MinInt64},
	}
	b := newBuilder(math.MinInt64)
	b.directory("/", attributes{modified: math.MinInt64, changed: math.MaxInt64, inode: math.MaxUint64})
	f := &folder{path: deep}
	for _, p := range pictures {
		f.pictures = append(f.pictures, picture{uint32(len(f.names)), uint32(len(f.names) + len(p.name)), p.size, p.modified})
		f.names = append(f.names, p.name...)
	}
	b.class(&classScan{name: "c", folders: []*folder{f}})
	m, err := parse(b.manifest())
	must(t, err)
	for i, p := range pictures {
		got, err := m.at(i, nil)
		must(t, err)
		if string(got.Key) != deep+"/"+p.name || got.Size != p.size || got.ModifiedNanos != p.modified {
			t.Errorf("sample %d is %.20s… %d %d, want %+v", i, got.Key, got.Size, got.ModifiedNanos, p)
		}
	}
	if _, a := m.directory(0); a.modified != math.MinInt64 || a.changed != math.MaxInt64 || a.inode != math.MaxUint64 {
		t.Errorf("directory 0 is %+v", a)
	}
}

// TestScansAgree: readers come and go in any order, the manifest is the same.
func TestScansAgree(t *testing.T) {
	root := many(t, 3000, 100)
	r, err := openRoot(root, "")
	must(t, err)
	defer func() { must(t, r.close()) }()
	var first []byte
	for _, readers := range []int{1, 2, 7, 64} {
		o := Options{Readers: readers, now: later}.withDefaults()
		data, err := scan(t.Context(), r, root, o)
		must(t, err)
		clear(data[80:88]) // the start of the scan
		data = sealed(data)
		if first == nil {
			first = data
		}
		if !bytes.Equal(data, first) {
			t.Errorf("%d readers make another manifest", readers)
		}
	}
}
