package manifest

import (
	"crypto/sha256"
	"encoding/binary"
)

// Class is one class of a manifest.
type Class struct {
	Name    string
	Samples int
	// Digest is the first 8 bytes, big-endian, of the SHA-256 over the class's name and its samples' names and sizes.
	Digest uint64
}

// The fingerprint of files in class folders is a tree of SHA-256, numbers little-endian, strings after their length
// as u32:
//
//	class:    "feedwater class 1\n", name, then for each sample its name below the class and its size as u64
//	snapshot: "feedwater snapshot 1\n", number of classes as u32, then for each class its label as u32 and its 32 bytes
//
// That of samples with labels or in objects is one SHA-256:
//
//	"samples of feedwater 1\n", for each sample its key, its size as u64 and its label as i64,
//	then the number of classes as u32 and their names
//
// Where samples have values it begins with "samples with values of feedwater 1\n"; behind each label stand the sizes of the values as u64, each with
// its bytes where the manifest holds these; and behind the classes the names of the values.
//
// It is a contract between nodes: other bytes here make every node of another version refuse the data.
func fingerprint(digests [][sha256.Size]byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte("feedwater snapshot 1\n"))
	h.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(digests))))
	for label, digest := range digests {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(label)))
		h.Write(digest[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// identityOf is what the fingerprint of samples with labels or in objects begins with.
func identityOf(form Form) string {
	if form.Values() > 0 {
		return "samples with values of feedwater 1\n"
	}
	return "samples of feedwater 1\n"
}
