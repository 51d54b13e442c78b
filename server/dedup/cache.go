package dedup

import (
	"container/list"
	"slices"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/snapshots"
)

// Key is a batch's name, and the data and plan that it is a name of.
type Key struct {
	Data  *snapshots.Snapshot
	Masks *snapshots.Snapshot // nil: none
	Plan  string
	Name  string // the message, as bytes
}

// Batch is what was made. Nobody writes it.
type Batch struct {
	Header *pb.Header
	Data   []byte
}

// batchCache keeps batches that were made, within a limit of bytes; those that nobody took for longest go first. The
// caller guards it, but for the limit.
type batchCache struct {
	limit, used int64
	byKey       map[Key]*list.Element
	order       list.List // of *entry, the latest used first
}

// entry is a batch in the cache.
type entry struct {
	key   Key
	batch *Batch
}

func newBatchCache(bytes int64) batchCache {
	return batchCache{limit: bytes, byKey: map[Key]*list.Element{}}
}

// findBatch finds a batch; nil if it is not there.
func (c *batchCache) findBatch(key Key) *Batch {
	e := c.byKey[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	found, _ := e.Value.(*entry)
	return found.batch
}

// copyBatch is a batch for the cache; nil: there is none, or it is too large. It may be called without the guard.
func (c *batchCache) copyBatch(b *Batch) *Batch {
	if b == nil || int64(len(b.Data)) > c.limit {
		return nil
	}
	return &Batch{Header: b.Header, Data: slices.Clone(b.Data)}
}

// addBatch adds a batch that is no larger than the limit, unless it is there.
func (c *batchCache) addBatch(key Key, b *Batch) {
	if c.findBatch(key) != nil {
		return
	}
	for c.used+int64(len(b.Data)) > c.limit {
		last, _ := c.order.Remove(c.order.Back()).(*entry)
		c.used -= int64(len(last.batch.Data))
		delete(c.byKey, last.key)
	}
	c.used += int64(len(b.Data))
	c.byKey[key] = c.order.PushFront(&entry{key, b})
}
