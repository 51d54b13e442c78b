package dataset

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/feedwater-io/feedwater/pipeline/dataset/layout"
	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/parquet"
	"github.com/feedwater-io/feedwater/pipeline/dataset/readcache"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// key is that of a block of an object.
func (s *Snapshot) key(o *store.Object, part string, offset, size int64) readcache.Key {
	version := string(o.Version)
	if version == "" {
		version = strconv.FormatInt(o.Modified, 10) + "/" + strconv.FormatInt(o.Size, 10)
		if o.Changed != 0 {
			version += "/" + strconv.FormatInt(o.Changed, 10)
		}
	}
	return readcache.KeyOf(s.place, string(o.Name), version, part, offset, size)
}

// unpacker is a snapshot of files whose pictures lie in compressed pages: a page is unpacked as a whole, and its
// pictures are kept.
type unpacker struct{ *Snapshot }

// keepUnpacked is what a scan gives to the disk that keeps blocks; nil where there is none.
func (s unpacker) keepUnpacked() func(context.Context, *store.Object, *parquet.Part, *parquet.Packed) error {
	if s.blocks == nil {
		return nil
	}
	var mu sync.Mutex
	total := int64(0)
	return func(ctx context.Context, o *store.Object, p *parquet.Part, v *parquet.Packed) error {
		mu.Lock()
		total += int64(len(v.Values))
		unpacked := total
		mu.Unlock()
		if unpacked > s.blocks.Limit() {
			return s.tooLittleRoom(unpacked)
		}
		s.keepValues(o, p.String(), v)
		return ctx.Err()
	}
}

// keepValues keeps each value of a part as a block.
func (s unpacker) keepValues(o *store.Object, part string, v *parquet.Packed) {
	begin := int64(0)
	for _, end := range v.Ends {
		s.blocks.Write(s.key(o, part, begin, end-begin), v.Values[begin:end])
		begin = end
	}
}

func (s unpacker) tooLittleRoom(unpacked int64) error {
	return fmt.Errorf("%w: its pictures are in compressed pages, and unpacked they have %d bytes at least: a read cache of %d bytes would have each page "+
		"unpacked again and again. Give it more by --read-cache-limit, or write the files again without compression", layout.ErrLayout, unpacked, s.blocks.Limit())
}

// checkRoom returns an error where what has to be unpacked does not fit into the read cache.
func (s unpacker) checkRoom() (err error) {
	if s.form&manifest.Packed == 0 {
		return nil
	}
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	total := int64(0)
	for i := range s.manifest.Objects() {
		if o := s.manifest.Object(i); o.Part != "" {
			total += o.Size
		}
	}
	if total > s.blocks.Limit() {
		return s.tooLittleRoom(total)
	}
	return nil
}

// unpackInto fills p with a value of a part, which is unpacked where it is not kept.
func (s unpacker) unpackInto(ctx context.Context, from *source, r *request, p []byte, off int64) error {
	key := s.key(&r.object, r.part, off, int64(len(p)))
	if s.blocks.Read(key, p) {
		return nil
	}
	// Who reads through another store does not wait for a read of this one, which may hang for ever.
	defer s.unpacking.lock(fmt.Sprintf("%p/%s/%s", from, r.object.Name, r.part))()
	if s.blocks.Read(key, p) { // somebody else has unpacked it
		return nil
	}
	v, err := readPart(ctx, from, r)
	if err != nil {
		return err
	}
	if off+int64(len(p)) > int64(len(v.Values)) {
		return fmt.Errorf("%w: %s unpacks to %d bytes", manifest.ErrDamaged, r.object.Name, len(v.Values))
	}
	copy(p, v.Values[off:])
	s.keepValues(&r.object, r.part, v)
	return nil
}

// readPart reads and unpacks a part.
func readPart(ctx context.Context, from *source, r *request) (*parquet.Packed, error) {
	part, ok := parquet.ParsePart(r.part)
	if !ok {
		return nil, fmt.Errorf("%w: a part is called %.99q", manifest.ErrDamaged, r.part)
	}
	b := make([]byte, part.Length)
	if err := from.ReadAt(ctx, &r.object, b, part.Offset); err != nil {
		return nil, err
	}
	v, err := part.Unpack(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.object.Name, err)
	}
	return v, nil
}

// namedLocks lets one goroutine at a time do what is called something. The zero value works.
type namedLocks struct {
	mu    sync.Mutex
	going map[string]*namedLock
}

type namedLock struct {
	mu    sync.Mutex
	users int
}

// lock waits until nobody does it, and returns what ends the lock.
func (n *namedLocks) lock(name string) func() {
	n.mu.Lock()
	if n.going == nil {
		n.going = map[string]*namedLock{}
	}
	one := n.going[name]
	if one == nil {
		one = &namedLock{}
		n.going[name] = one
	}
	one.users++
	n.mu.Unlock()
	one.mu.Lock()
	return func() {
		one.mu.Unlock()
		n.mu.Lock()
		defer n.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(n.going, name)
		}
	}
}
