package loader

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
)

// Digest hashes a stream of batches: SHA-256 over index (u64, little-endian), label (i64, little-endian) and pixels of
// each valid sample in order, those of one view after those of the other. It does not depend on where batches are cut,
// so it is the same for every batch size and every set of nodes.
type Digest struct {
	hash    hash.Hash
	samples uint64
}

// NewDigest returns the digest of an empty stream.
func NewDigest() *Digest { return &Digest{hash: sha256.New()} }

// Add appends a batch. The batch must have labels; images are hashed if it has any.
func (d *Digest) Add(b *Batch) error {
	indices, labels := b.Indices(), b.Labels()
	if len(indices) < b.Valid || len(labels) < b.Valid {
		return fmt.Errorf("a batch of %d samples with %d indices and %d labels", b.Valid, len(indices), len(labels))
	}
	var head [16]byte
	for i := range b.Valid {
		binary.LittleEndian.PutUint64(head[:], uint64(indices[i]))
		binary.LittleEndian.PutUint64(head[8:], uint64(labels[i]))
		d.hash.Write(head[:])
		for _, f := range b.Fields {
			pix, _, _ := b.Picture(f.Name, i)
			d.hash.Write(pix)
		}
		d.samples++
	}
	return nil
}

// Samples is how many were added.
func (d *Digest) Samples() uint64 { return d.samples }

// Sum is the digest so far, in hex.
func (d *Digest) Sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }
