package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// builder makes a manifest: directory for the root, class for every class in label order, then manifest.
type builder struct {
	scanned     int64
	samples     int
	out         []byte // room for the header, then blocks
	index       []uint64
	directories []byte
	names       []byte
	classes     []classRecord

	key, next []byte // of the sample before, of this one
	modified  int64  // of the sample before
}

type classRecord struct {
	first, directory uint64
	digest           [sha256.Size]byte
}

func newBuilder(scanned int64) *builder {
	return &builder{scanned: scanned, out: make([]byte, headerBytes)}
}

func (b *builder) directory(path string, a attributes) {
	b.names = append(b.names, path...)
	for _, v := range []uint64{uint64(len(b.names)), uint64(a.modified), uint64(a.changed), a.inode} {
		b.directories = binary.LittleEndian.AppendUint64(b.directories, v)
	}
}

func (b *builder) class(c *classScan) {
	directory := len(b.directories) / directoryBytes
	b.out = slices.Grow(b.out, 20*c.samples()) // they take 16 to 22 bytes each
	b.classes = append(b.classes, classRecord{uint64(b.samples), uint64(directory), c.sha256})
	for _, f := range c.folders {
		b.directory(f.path, f.attributes)
		for _, p := range f.pictures {
			name := f.name(p)
			b.next = b.next[:0]
			if f.path != "" {
				b.next = append(append(b.next, f.path...), '/')
			}
			b.next = append(b.next, name...)
			b.sample(p)
		}
	}
}

// sample adds the sample whose key is b.next.
func (b *builder) sample(p picture) {
	if b.samples%perBlock == 0 {
		b.index = append(b.index, uint64(len(b.out)-headerBytes))
		b.key, b.modified = b.key[:0], 0
	}
	shared := 0
	for shared < min(len(b.key), len(b.next)) && b.key[shared] == b.next[shared] {
		shared++
	}
	b.out = binary.AppendUvarint(b.out, uint64(shared))
	b.out = binary.AppendUvarint(b.out, uint64(len(b.next)-shared))
	b.out = append(b.out, b.next[shared:]...)
	b.out = binary.AppendUvarint(b.out, uint64(p.size))
	b.out = binary.AppendVarint(b.out, p.modified-b.modified)
	b.key, b.next, b.modified = b.next, b.key, p.modified
	b.samples++
}

// manifest adds the other sections behind the blocks and fills in the header.
func (b *builder) manifest() []byte {
	le := binary.LittleEndian
	fingerprint := fingerprint(b.classes)
	header := append([]byte(magic), fingerprint[:]...)
	for _, n := range []int{
		b.samples, len(b.classes), len(b.directories) / directoryBytes, len(b.out) - headerBytes, len(b.names),
	} {
		header = le.AppendUint64(header, uint64(n))
	}
	copy(b.out, le.AppendUint64(header, uint64(b.scanned)))
	for _, v := range b.index {
		b.out = le.AppendUint64(b.out, v)
	}
	b.out = append(b.out, b.directories...)
	for _, c := range b.classes {
		b.out = le.AppendUint64(le.AppendUint64(b.out, c.first), c.directory)
		b.out = append(b.out, c.digest[:]...)
	}
	b.out = append(b.out, b.names...)
	return le.AppendUint32(b.out, checksum(b.out))
}
