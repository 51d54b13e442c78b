package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Class is one class of a snapshot.
type Class struct {
	Name    string
	Samples int
	// Digest is the first 8 bytes, big-endian, of the SHA-256 over the class's name and its samples' names and sizes.
	Digest uint64
}

// Difference tells in words the first difference of two class lists, a's owner being "here"; "" when there is none.
func Difference(a, b []Class) string {
	here, there := labels(a), labels(b)
	for i := range max(len(a), len(b)) {
		if i < len(a) && !has(there, a[i]) {
			return fmt.Sprintf("class %s: %d samples here, missing there", a[i].Name, a[i].Samples)
		}
		if i < len(b) && !has(here, b[i]) {
			return fmt.Sprintf("class %s: missing here, %d samples there", b[i].Name, b[i].Samples)
		}
		if i < min(len(a), len(b)) {
			if d := a[i].difference(b[i], i, there[a[i].Name]); d != "" {
				return d
			}
		}
	}
	return ""
}

func labels(classes []Class) map[string]int {
	m := make(map[string]int, len(classes))
	for i, c := range classes {
		m[c.Name] = i
	}
	return m
}

func has(labels map[string]int, c Class) bool {
	_, ok := labels[c.Name]
	return ok
}

// difference compares two classes of equal label; other is the label that c's name has in the other list.
func (c Class) difference(d Class, label, other int) string {
	switch {
	case c.Name != d.Name:
		return fmt.Sprintf("class %s: label %d here, %d there", c.Name, label, other)
	case c.Samples != d.Samples:
		return fmt.Sprintf("class %s: %d samples here, %d there", c.Name, c.Samples, d.Samples)
	case c.Digest != d.Digest:
		return fmt.Sprintf("class %s: %d samples here and there, but with other names or sizes", c.Name, c.Samples)
	}
	return ""
}

// The fingerprint is a tree of SHA-256, numbers little-endian, strings after their length as u32:
//
//	class:    "feedwater class 1\n", name, then for each sample its name below the class and its size as u64
//	snapshot: "feedwater snapshot 1\n", number of classes as u32, then for each class its label as u32 and its 32 bytes
//
// It is a contract between nodes: other bytes here make every node of another version refuse the data.
func (c *classScan) digest() [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte("feedwater class 1\n"))
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(c.name)))
	h.Write(append(b, c.name...))
	for _, f := range c.folders {
		below := []byte(f.path[len(c.name):])
		if len(below) > 0 {
			below = append(below[1:], '/')
		}
		for _, p := range f.pictures {
			name := f.name(p)
			b = binary.LittleEndian.AppendUint32(b[:0], uint32(len(below)+len(name)))
			b = append(append(b, below...), name...)
			h.Write(binary.LittleEndian.AppendUint64(b, uint64(p.size)))
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func fingerprint(classes []classRecord) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte("feedwater snapshot 1\n"))
	h.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(classes))))
	for label, c := range classes {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(label)))
		h.Write(c.digest[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}
