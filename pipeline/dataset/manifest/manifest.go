// Package manifest keeps lists of samples: one file, written while it is found out and read in place. Of a
// list, however long, little is read when it is opened, and each page is checked when it is used; none, however
// damaged, is read beyond its end. The package knows no directories, and starts no goroutines.
package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strconv"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// A manifest is one file, read in place. Integers are little-endian:
//
//	magic    [8]
//	chunks   of 65,536 samples each: up to 512 pages, see page.go, and behind them where each begins u64
//	chunks   where that table of each chunk begins u64
//	watched  directories and files that the list depends on: name, time of change by people i64, by the kernel i64,
//	         inode u64
//	objects  what samples are members of: name, size u64, modification time i64; if Versioned in place of the time the
//	         end of the version in names, where it stands behind the name; if Packed, parts of objects are in it too, see
//	         cutPart
//	classes  in label order: name, first sample u64, samples u64, digest u64
//	values   that each sample has: name, bytes of the largest u64; the form says how many there are
//	versions if Versioned, a digest [32] of those of all samples, or of the objects that they are members of
//	names    of all these, each told by where it begins u64 and ends u64; the root's absolute path comes first
//	foot     fingerprint [32], digest of pages and tables [32], begin of the tables u64, samples u64, form u64,
//	         watched u64, objects u64, classes u64, bytes of names u64, bytes of the root's path u64,
//	         start of the scan i64 (nanoseconds since 1970), CRC-32C u32 of the tables and of the foot before it
//
// Tables and foot are checked when a manifest is opened, a page when it is used.
const (
	magic          = "fwsnap2\n"
	pagesPerChunk  = 512
	perChunk       = pagesPerChunk * perPage
	watchedNumbers = 5
	objectNumbers  = 4
	classNumbers   = 5
	valueNumbers   = 3
	footNumbers    = 9
	scannedAt      = 2*sha256.Size + 8*(footNumbers-1) // in the foot
	footBytes      = 2*sha256.Size + 8*footNumbers + 4
)

// MaxKeyBytes is Linux's PATH_MAX without the closing zero: a longer path cannot be opened.
const MaxKeyBytes = 4095

// MaxValueBytes is how large a value of a sample may be, and MostValues how many a sample may have.
const (
	MaxValueBytes = 1 << 20
	MostValues    = 32
)

// MinBytes is less than any manifest has.
const MinBytes = len(magic) + footBytes

// ErrDamaged is wrapped by every error about a manifest that is not whole.
var ErrDamaged = errors.New("the list that was kept of the data set is damaged, and is made anew when the data set is opened next")

// Form says what is listed of each sample. The zero value is for samples that are files in class folders.
type Form uint64

const (
	// Labelled samples have a label each; others are in runs of classes.
	Labelled Form = 1 << iota
	// Members are parts of objects; others are files of their own, named by their keys.
	Members
	// Unlabelled samples have labels that mean nothing.
	Unlabelled
	// Versioned samples, or the objects that they are members of, have versions in place of times.
	Versioned
	// Packed members are, some of them, in parts of objects that have to be unpacked.
	Packed
	// Held values of members are bytes that the manifest holds, as those of files of their own.
	Held

	allForms  = Held<<1 - 1
	valuesBit = 8 // and up: how many values a sample has
)

// WithValues is the form of samples that have n values each, besides their file: of Members that are not Held ranges of the same object, else
// bytes that the manifest holds.
func (f Form) WithValues(n int) Form { return f | Form(n)<<valuesBit }

// HoldsValues reports whether the manifest holds the bytes of values.
func (f Form) HoldsValues() bool { return f&(Members|Held) != Members }

// versionsBytes is how long the digest of versions is.
func (f Form) versionsBytes() uint64 {
	if f&Versioned == 0 {
		return 0
	}
	return sha256.Size
}

// Values is how many values a sample has.
func (f Form) Values() int { return int(f >> valuesBit) }

// Value is one that all samples of a manifest have.
type Value struct {
	Name string
	// Most is the size of the largest one, in bytes.
	Most int64
}

// SampleValue is a value of one sample.
type SampleValue struct {
	// Offset of a value in the sample's object, where the form does not hold values.
	Offset int64
	// Size in bytes.
	Size int64
	// Data of a value where it does.
	Data []byte
}

// Sample is one line of a manifest.
type Sample struct {
	// Key is a path, with slashes on every system: of a file that below the root, "class/…/name"; of a member that of
	// its object, a slash, and its name in there. It lies in the buffer given to At.
	Key []byte
	// Label is the class's place in Classes, or a number of its own where there are no classes.
	Label int64
	// Size in bytes.
	Size int64
	// ModifiedNanos is the modification time of a file of its own in nanoseconds since 1970.
	ModifiedNanos int64
	// Version of an object of its own, as a store tells it. It lies in the buffer given to At, behind the key.
	Version []byte
	// Object that it is a member of, and where it begins there.
	Object int
	Offset int64
	// Values, as many as the form says.
	Values []SampleValue
}

// Object is a file that samples are members of.
type Object struct {
	// Name is its path below the root.
	Name []byte
	// Size in bytes, and modification time in nanoseconds since 1970.
	Size, ModifiedNanos int64
	// Version as a store tells it, if Versioned: then there is no time.
	Version []byte
	// Part of it that has to be unpacked, as a layout calls it; empty: samples lie in it as it is. Of a part Size is what it unpacks to, and Whole
	// the size of the object.
	Part  string
	Whole int64
}

// Manifest reads the bytes of a manifest; it is valid as long as they are. Its methods may be called by many
// goroutines at once.
type Manifest struct {
	pages                             []byte // magic and chunks
	chunks, watched, objects, classes []byte
	values, versions                  []byte
	names, foot                       []byte
	root                              int
	samples                           int
	form                              Form
}

// Parse checks a whole manifest except its pages. The error wraps ErrDamaged.
func Parse(data []byte) (*Manifest, error) {
	if len(data) < MinBytes || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it has no beginning", ErrDamaged)
	}
	m := &Manifest{foot: data[len(data)-footBytes:]}
	tables := m.number(0)
	if tables > uint64(len(data)-footBytes) || tables < uint64(len(magic)) {
		return nil, fmt.Errorf("%w: its tables begin at %d", ErrDamaged, tables)
	}
	rest := data[tables : len(data)-footBytes]
	sum := checksum(checksum(0, rest), m.foot[:footBytes-4])
	if sum != binary.LittleEndian.Uint32(m.foot[footBytes-4:]) {
		return nil, fmt.Errorf("%w: its checksum differs", ErrDamaged)
	}
	m.pages = data[:tables:tables]
	if err := m.cut(rest); err != nil {
		return nil, err
	}
	return m, m.check()
}

// number is one of the foot's.
func (m *Manifest) number(i int) uint64 { return u64(m.foot, 2*sha256.Size+8*i) }

// cut finds the tables.
func (m *Manifest) cut(rest []byte) error {
	for i := 1; i < footNumbers-1; i++ {
		if i != 2 && m.number(i) > uint64(len(m.pages)+len(rest)) { // each takes a byte at least
			return fmt.Errorf("%w: number %d is %d", ErrDamaged, i, m.number(i))
		}
	}
	m.samples, m.form, m.root = int(m.number(1)), Form(m.number(2)), int(m.number(7))
	if m.form>>valuesBit > MostValues || m.form&(1<<valuesBit-1) > allForms {
		return fmt.Errorf("%w: it has the form %#x", ErrDamaged, uint64(m.form))
	}
	for _, section := range []struct {
		to    *[]byte
		bytes uint64
	}{
		{&m.chunks, 8 * ((m.number(1) + perChunk - 1) / perChunk)},
		{&m.watched, 8 * watchedNumbers * m.number(3)},
		{&m.objects, 8 * objectNumbers * m.number(4)},
		{&m.classes, 8 * classNumbers * m.number(5)},
		{&m.values, 8 * valueNumbers * uint64(m.form.Values())},
		{&m.versions, m.form.versionsBytes()},
		{&m.names, m.number(6)},
	} {
		if section.bytes > uint64(len(rest)) {
			return fmt.Errorf("%w: it is too short", ErrDamaged)
		}
		*section.to, rest = rest[:section.bytes:section.bytes], rest[section.bytes:]
	}
	if len(rest) > 0 || m.root > len(m.names) {
		return fmt.Errorf("%w: its tables have another length", ErrDamaged)
	}
	return nil
}

// check looks at the tables.
func (m *Manifest) check() error {
	for name, t := range map[string]struct {
		rows    []byte
		numbers int
	}{
		"watched": {m.watched, watchedNumbers}, "object": {m.objects, objectNumbers}, "class": {m.classes, classNumbers},
		"value": {m.values, valueNumbers},
	} {
		for i := 0; i < len(t.rows); i += 8 * t.numbers {
			if begin, end := u64(t.rows, i), u64(t.rows, i+8); begin > end || end > uint64(len(m.names)) {
				return fmt.Errorf("%w: %s %d", ErrDamaged, name, i/8/t.numbers)
			}
		}
	}
	for i := range m.Objects() {
		if !m.versionLies(i) {
			return fmt.Errorf("%w: version of object %d", ErrDamaged, i)
		}
		if o := m.Object(i); o.Size < 0 || !isLocal(o.Name) {
			return fmt.Errorf("%w: object %d", ErrDamaged, i)
		}
	}
	for i := range m.form.Values() {
		if u64(m.values, 8*(valueNumbers*i+2)) > MaxValueBytes {
			return fmt.Errorf("%w: value %d", ErrDamaged, i)
		}
	}
	if m.form&Labelled != 0 {
		return nil
	}
	first := uint64(0)
	for i := range m.labels() {
		if row := m.classes[8*classNumbers*i:]; u64(row, 16) != first || u64(row, 24) > uint64(m.samples)-first {
			return fmt.Errorf("%w: class %d", ErrDamaged, i)
		}
		first += u64(m.classes, 8*classNumbers*i+24)
	}
	if first != uint64(m.samples) || m.labels() == 0 {
		return fmt.Errorf("%w: %d samples are of no class", ErrDamaged, uint64(m.samples)-first)
	}
	return nil
}

func u64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

func (m *Manifest) labels() int { return len(m.classes) / 8 / classNumbers }

// Samples is how many there are.
func (m *Manifest) Samples() int { return m.samples }

// Form says what is listed of each sample.
func (m *Manifest) Form() Form { return m.form }

// Fingerprint is 32 bytes, which differ where names, sizes, labels or order do.
func (m *Manifest) Fingerprint() []byte { return m.foot[:sha256.Size] }

// Versions is a digest of the versions of all that is listed, in order; empty if not Versioned. Copies of the same files
// differ in it.
func (m *Manifest) Versions() []byte { return m.versions }

// Scanned is when the search for the samples began, in nanoseconds since 1970.
func (m *Manifest) Scanned() int64 { return int64(u64(m.foot, scannedAt)) }

// Root is the absolute path that all others are below.
func (m *Manifest) Root() string { return string(m.names[:m.root]) }

// Watches is how many directories and files the list depends on.
func (m *Manifest) Watches() int { return len(m.watched) / 8 / watchedNumbers }

// Watched is one of them: its path below the root, and what it was.
func (m *Manifest) Watched(i int) (string, store.Attributes) {
	row := m.watched[8*watchedNumbers*i:]
	a := store.Attributes{Modified: int64(u64(row, 16)), Changed: int64(u64(row, 24)), Inode: u64(row, 32)}
	return string(m.name(row)), a
}

// Objects is how many files have members.
func (m *Manifest) Objects() int { return len(m.objects) / 8 / objectNumbers }

// Object is one of them, 0 ≤ i < Objects. Nobody may change its name.
func (m *Manifest) Object(i int) Object {
	row := m.objects[8*objectNumbers*i:]
	o := Object{Name: m.name(row), Size: m.objectSize(i), ModifiedNanos: int64(u64(row, 24))}
	if m.form&Versioned != 0 {
		o.Version, o.ModifiedNanos = m.names[u64(row, 8):u64(row, 24):u64(row, 24)], 0
	}
	if m.form&Packed != 0 {
		o.cutPart()
	}
	return o
}

// Identity tells a file from one that took its name: as in store.Attributes.
type Identity struct {
	Inode   uint64
	Changed int64
}

// Identities are those of all objects, as far as they are watched; none of objects on servers, which have versions.
func (m *Manifest) Identities() []Identity {
	if m.form&(Members|Versioned) != Members {
		return nil
	}
	watched := make(map[string]Identity, m.Watches())
	for i := range m.Watches() {
		name, a := m.Watched(i)
		watched[name] = Identity{a.Inode, a.Changed}
	}
	all := make([]Identity, m.Objects())
	for i := range all {
		o := m.Object(i)
		all[i] = watched[string(o.Name)]
	}
	return all
}

// objectSize is the size of an object, without a look at its name.
func (m *Manifest) objectSize(i int) int64 { return int64(u64(m.objects, 8*(objectNumbers*i+2))) }

// cutPart cuts the part off an object's name: behind the last slash a sign that no other name has there, the object's size and what the part is called.
func (o *Object) cutPart() {
	at := bytes.LastIndex(o.Name, []byte(partSign))
	if at < 0 {
		return
	}
	size, part, ok := bytes.Cut(o.Name[at+len(partSign):], []byte{','})
	whole, err := strconv.ParseInt(string(size), 16, 64)
	if !ok || err != nil {
		whole = -1 // no object has this size
	}
	o.Name, o.Part, o.Whole = o.Name[:at:at], string(part), whole
}

// partSign begins the name of a part behind that of its object, which is a file: nothing lies below it.
const partSign = "/\x01part,"

// versionLies reports whether the version of an object, if it has one, lies within the names.
func (m *Manifest) versionLies(i int) bool {
	row := m.objects[8*objectNumbers*i:]
	return m.form&Versioned == 0 || u64(row, 24) >= u64(row, 8) && u64(row, 24) <= uint64(len(m.names))
}

// name is that of a row.
func (m *Manifest) name(row []byte) []byte { return m.names[u64(row, 0):u64(row, 8):u64(row, 8)] }

// Values are those that each sample has.
func (m *Manifest) Values() []Value {
	all := make([]Value, m.form.Values())
	for i := range all {
		row := m.values[8*valueNumbers*i:]
		all[i] = Value{Name: string(m.name(row)), Most: int64(u64(row, 16))}
	}
	return all
}

// Classes in label order.
func (m *Manifest) Classes() []Class { return classList(m.classes, m.names) }

func classList(rows, names []byte) []Class {
	list := make([]Class, len(rows)/8/classNumbers)
	for i := range list {
		row := rows[8*classNumbers*i:]
		list[i] = Class{Name: string(names[u64(row, 0):u64(row, 8)]), Samples: int(u64(row, 24)), Digest: u64(row, 32)}
	}
	return list
}

// label is the class that sample i is in the run of.
func (m *Manifest) label(i int) int64 {
	behind := func(l int) bool { return u64(m.classes, 8*classNumbers*(l+1)+16) > uint64(i) }
	return int64(sort.Search(m.labels()-1, behind))
}

// page checks the page that holds sample i.
func (m *Manifest) page(i int) ([]byte, bool) {
	at := u64(m.chunks, 8*(i/perChunk)) + 8*uint64(i%perChunk/perPage)
	if at > uint64(len(m.pages)) || uint64(len(m.pages))-at < 8 {
		return nil, false
	}
	return openPage(m.pages, u64(m.pages, int(at)), uint64(i/perPage))
}

// open checks the page that holds sample i and returns the cursor before its block.
func (m *Manifest) open(i int, key []byte) (cursor, bool) {
	page, ok := m.page(i)
	if !ok {
		return cursor{}, false
	}
	return block(page, i%perPage, min(perPage, m.samples-i/perPage*perPage), key)
}

// At reads sample i and writes its key over the key it is given. The error wraps ErrDamaged where there is such a
// sample.
func (m *Manifest) At(i int, key []byte) (Sample, error) {
	if i < 0 || i >= m.samples {
		return Sample{}, fmt.Errorf("sample %d of %d", i, m.samples)
	}
	c, ok := m.open(i, key)
	for n := i%perBlock + 1; ok && n > 0; n-- {
		c, ok = c.next(m.form)
	}
	if !ok || !m.holds(&c) {
		return Sample{}, fmt.Errorf("%w: sample %d", ErrDamaged, i)
	}
	s := Sample{Key: c.key, Label: c.label, Size: c.size, ModifiedNanos: c.modified, Version: c.version}
	s.Object, s.Offset = int(c.object), c.offset
	if m.form&Labelled == 0 {
		s.Label = m.label(i)
	}
	if m.form.Values() > 0 {
		s.Values, ok = m.valuesOf(&c)
	}
	if !ok {
		return Sample{}, fmt.Errorf("%w: values of sample %d", ErrDamaged, i)
	}
	return s, nil
}

// valuesOf reads the values of a sample, and copies what the manifest holds of them.
func (m *Manifest) valuesOf(c *cursor) ([]SampleValue, bool) {
	all, rest := make([]SampleValue, m.form.Values()), c.values
	for i := range all {
		v, left, ok := cutValue(m.form, rest)
		if !ok || v.Size > int64(u64(m.values, 8*(valueNumbers*i+2))) {
			return nil, false
		}
		rest = left
		if m.form.HoldsValues() {
			v.Data = bytes.Clone(v.Data)
		} else if v.Offset += c.offset; v.Offset < 0 || v.Offset > m.objectSize(int(c.object))-v.Size {
			return nil, false
		}
		all[i] = v
	}
	return all, true
}

// holds reports whether a sample may lie where a page says.
func (m *Manifest) holds(c *cursor) bool {
	if c.size < 0 || !isLocal(c.key) {
		return false
	}
	if m.form&Labelled != 0 && m.labels() > 0 && uint64(c.label) >= uint64(m.labels()) {
		return false
	}
	if m.form&Members == 0 {
		return true
	}
	if c.object < 0 || c.object >= int64(m.Objects()) || c.offset < 0 {
		return false
	}
	size := m.objectSize(int(c.object))
	return c.offset <= size && c.size <= size-c.offset
}

// AppendKeys appends the keys of all samples to b, in order and each with a zero byte behind it, which no key
// contains. It reads each block once, where At reads a block up to its sample.
func (m *Manifest) AppendKeys(b []byte) ([]byte, error) {
	key := make([]byte, 0, MaxKeyBytes)
	for i := 0; i < m.samples; i += perBlock {
		c, ok := m.open(i, key)
		for k := i; k < min(i+perBlock, m.samples); k++ {
			if ok {
				c, ok = c.next(m.form)
			}
			if !ok || !isLocal(c.key) {
				return nil, fmt.Errorf("%w: sample %d", ErrDamaged, k)
			}
			b = append(append(b, c.key...), 0)
		}
	}
	return b, nil
}

// CheckPages reads all pages, where others check a page when it is used. The error wraps ErrDamaged.
func (m *Manifest) CheckPages() error {
	content := sha256.New()
	for i := 0; i < m.samples; i += perPage {
		page, ok := m.page(i)
		if !ok {
			return fmt.Errorf("%w: page of sample %d", ErrDamaged, i)
		}
		content.Write(page[:pageHead])
	}
	for _, table := range [][]byte{m.chunks, m.watched, m.objects, m.classes, m.values, m.versions, m.names} {
		content.Write(table)
	}
	if !bytes.Equal(content.Sum(nil), m.foot[sha256.Size:2*sha256.Size]) {
		return fmt.Errorf("%w: the digest of its pages differs", ErrDamaged)
	}
	return nil
}

// Content is a digest of what the manifest says of samples, with the times of their files; of folders only where samples
// are members, or there are so many of them that reading all pages would take long. The error wraps ErrDamaged.
func (m *Manifest) Content() ([]byte, error) {
	if m.form&Members != 0 || m.samples > mostDigested {
		return m.foot[sha256.Size : 2*sha256.Size], nil
	}
	content := sha256.New()
	content.Write(m.Fingerprint())
	for i := 0; i < m.samples; i += perPage {
		page, ok := m.page(i)
		if !ok {
			return nil, fmt.Errorf("%w: page of sample %d", ErrDamaged, i)
		}
		content.Write(page[:pageHead])
	}
	return content.Sum(nil), nil
}

// mostDigested samples take some 150 MB of pages.
const mostDigested = 1 << 23

// Same reports whether two manifests say the same, but for when they were made.
func (m *Manifest) Same(other *Manifest) bool {
	return bytes.Equal(m.foot[:scannedAt], other.foot[:scannedAt])
}

// isLocal reports whether a key can only name something below the root: a manifest from a cache that others can write
// must not lead elsewhere.
func isLocal(key []byte) bool {
	start := 0
	for i := 0; i <= len(key); i++ {
		if i < len(key) && key[i] == 0 {
			return false
		}
		if i < len(key) && key[i] != '/' {
			continue
		}
		if part := key[start:i]; len(part) == 0 || string(part) == "." || string(part) == ".." {
			return false
		}
		start = i + 1
	}
	return true
}
