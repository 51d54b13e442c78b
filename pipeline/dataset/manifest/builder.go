package manifest

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math"
	"strconv"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Builder writes a manifest while its samples are found. It holds a page, and of each 65,536 samples 8 bytes; besides
// what is told of classes, objects and what is watched. The first error of the writer is that of all later calls.
type Builder struct {
	out     *bufio.Writer
	err     error
	written uint64
	form    Form
	scanned int64
	samples uint64

	page     pageBuilder
	index    []uint64  // where the pages of this chunk begin
	chunks   []uint64  // where the index of each chunk begins
	content  hash.Hash // over all pages, and then the tables
	print    [sha256.Size]byte
	versions hash.Hash // of what is Versioned, see Manifest.Versions
	identity hash.Hash // of samples that are not in runs of classes, see fingerprint; else nil

	watched, objects, classes table
	values                    []Value
	digests                   [][sha256.Size]byte
	names                     []byte
	root                      int // bytes of its name, which comes first
}

// NewBuilder begins a manifest of the samples below root, an absolute path, that are looked for since scanned, in
// nanoseconds since 1970.
func NewBuilder(to io.Writer, form Form, root string, scanned int64) *Builder {
	b := &Builder{out: bufio.NewWriterSize(to, 64<<10), form: form, scanned: scanned, content: sha256.New(), versions: sha256.New()}
	b.names, b.root = append(b.names, root...), len(root)
	if form&(Labelled|Members) != 0 {
		b.identity = sha256.New()
		b.identity.Write([]byte(identityOf(form)))
	}
	b.write([]byte(magic))
	return b
}

func (b *Builder) write(p []byte) {
	if b.err == nil {
		_, b.err = b.out.Write(p)
	}
	b.written += uint64(len(p))
}

// name adds a name and returns where it begins and ends.
func (b *Builder) name(s string) (begin, end uint64) {
	begin = uint64(len(b.names))
	b.names = append(b.names, s...)
	return begin, uint64(len(b.names))
}

// Watch adds a directory or a file that has to be as it is now for the list to be true: its path below the root, ""
// for the root.
func (b *Builder) Watch(path string, a store.Attributes) {
	begin, end := b.name(path)
	b.watched.add(begin, end, uint64(a.Modified), uint64(a.Changed), a.Inode)
}

// Class adds a class, in label order; without Labelled its samples follow.
func (b *Builder) Class(name string, samples int, digest [sha256.Size]byte) {
	begin, end := b.name(name)
	b.classes.add(begin, end, b.samples, uint64(samples), binary.BigEndian.Uint64(digest[:]))
	b.digests = append(b.digests, digest)
}

// Object adds an object that samples are members of, and returns its number.
func (b *Builder) Object(name string, a store.Attributes) int {
	begin, end := b.name(name)
	version := uint64(a.Modified)
	if b.form&Versioned != 0 {
		_, version = b.name(a.Version)
		b.addVersion(a.Version)
	}
	b.objects.add(begin, end, uint64(a.Size), version)
	return int(b.objects.rows(objectNumbers)) - 1
}

// Part adds a part of an object that has to be unpacked, to so many bytes, and returns its number.
func (b *Builder) Part(name string, a store.Attributes, part string, size int64) int {
	b.form |= Packed
	name = name + partSign + strconv.FormatInt(a.Size, 16) + "," + part
	a.Size = size
	return b.Object(name, a)
}

// Value names the next of the values that each sample has; the form says how many there are.
func (b *Builder) Value(name string) { b.values = append(b.values, Value{Name: name}) }

// Unlabel says that the labels of the samples, which are listed by Labelled, mean nothing.
func (b *Builder) Unlabel() { b.form |= Unlabelled }

// Sample adds a sample. Its key is not longer than MaxKeyBytes. What the form leaves out is ignored. The key is the
// caller's again afterwards.
func (b *Builder) Sample(s *Sample) error {
	if b.err == nil && (b.samples == math.MaxUint32 || len(s.Key) > MaxKeyBytes) {
		b.err = fmt.Errorf("sample %d: %.99s: a data set has no more samples, or no key so long", b.samples, s.Key)
	}
	if n := b.form.Values(); b.err == nil && (len(s.Values) != n || len(b.values) != n) {
		b.err = fmt.Errorf("sample %d: %.99s: %d values of %d, %d of which are named", b.samples, s.Key, len(s.Values), n, len(b.values))
	}
	if b.err != nil {
		return b.err
	}
	b.page.add(b.form, s)
	if b.form&(Members|Versioned) == Versioned {
		b.addVersion(string(s.Version))
	}
	b.samples++
	for i := range b.values {
		b.values[i].Most = max(b.values[i].Most, s.Values[i].Size)
	}
	if b.identity != nil {
		b.identify(s)
	}
	if b.page.count == perPage {
		b.flush()
	}
	return b.err
}

// addVersion adds the version of a sample or an object to the digest of them all.
func (b *Builder) addVersion(version string) {
	var room [128]byte
	line := binary.LittleEndian.AppendUint32(room[:0], uint32(len(version)))
	b.versions.Write(append(line, version...))
}

// identify adds a sample to the fingerprint.
func (b *Builder) identify(s *Sample) {
	var room [512]byte
	line := binary.LittleEndian.AppendUint32(room[:0], uint32(len(s.Key)))
	line = append(line, s.Key...)
	line = binary.LittleEndian.AppendUint64(line, uint64(s.Size))
	b.identity.Write(binary.LittleEndian.AppendUint64(line, uint64(s.Label)))
	for _, v := range s.Values {
		b.identity.Write(binary.LittleEndian.AppendUint64(line[:0], uint64(v.Size)))
		b.identity.Write(v.Data)
	}
}

// flush writes the page at hand.
func (b *Builder) flush() {
	number := (b.samples - 1) / perPage
	b.index = append(b.index, b.written)
	page := b.page.seal(number)
	b.content.Write(page[:pageHead])
	b.write(page)
	b.page.reset()
	if len(b.index) == pagesPerChunk {
		b.endChunk()
	}
}

func (b *Builder) endChunk() {
	b.chunks = append(b.chunks, b.written)
	b.write(appendNumbers(nil, b.index...))
	b.index = b.index[:0]
}

// Samples is how many there are so far.
func (b *Builder) Samples() int { return int(b.samples) }

// Versions is that of the manifest, of what was added so far.
func (b *Builder) Versions() []byte {
	if b.form&Versioned == 0 {
		return nil
	}
	return b.versions.Sum(nil)
}

// Fingerprint is that of the whole list, once Finish has returned.
func (b *Builder) Fingerprint() []byte { return b.print[:] }

// Finish writes the rest. The manifest is whole if it returns no error.
func (b *Builder) Finish() error {
	if b.page.count > 0 {
		b.flush()
	}
	if len(b.index) > 0 {
		b.endChunk()
	}
	tables := appendNumbers(nil, b.chunks...)
	tables = append(append(append(tables, b.watched...), b.objects...), b.classes...)
	for _, v := range b.values {
		begin, end := b.name(v.Name)
		tables = appendNumbers(tables, begin, end, uint64(v.Most))
	}
	tables = append(tables, b.Versions()...)
	tables = append(tables, b.names...)
	b.content.Write(tables)
	foot := make([]byte, 0, footBytes)
	b.print = b.fingerprint()
	foot = b.content.Sum(append(foot, b.print[:]...))
	foot = appendNumbers(foot, b.written, b.samples, uint64(b.form))
	foot = appendNumbers(foot, b.watched.rows(watchedNumbers), b.objects.rows(objectNumbers),
		b.classes.rows(classNumbers), uint64(len(b.names)), uint64(b.root), uint64(b.scanned))
	foot = binary.LittleEndian.AppendUint32(foot, checksum(checksum(0, tables), foot))
	b.write(append(tables, foot...))
	if b.err == nil {
		b.err = b.out.Flush()
	}
	return b.err
}

// fingerprint is that of class runs, or of all samples in their order.
func (b *Builder) fingerprint() [sha256.Size]byte {
	if b.identity == nil {
		return fingerprint(b.digests)
	}
	list := classList(b.classes, b.names)
	line := binary.LittleEndian.AppendUint32(nil, uint32(len(list)))
	for _, c := range list {
		line = binary.LittleEndian.AppendUint32(line, uint32(len(c.Name)))
		line = append(line, c.Name...)
	}
	for _, v := range b.values {
		line = binary.LittleEndian.AppendUint32(line, uint32(len(v.Name)))
		line = append(line, v.Name...)
	}
	b.identity.Write(line)
	return [sha256.Size]byte(b.identity.Sum(nil))
}

// table is rows of numbers.
type table []byte

func (t *table) add(numbers ...uint64) { *t = appendNumbers(*t, numbers...) }

// rows is how many there are of so many numbers.
func (t table) rows(numbers int) uint64 { return uint64(len(t) / 8 / numbers) }

func appendNumbers(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}
