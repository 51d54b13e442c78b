package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// How much of an object is read at once where it is read in order: of a file a page, since behind a member that is
// passed over lie its padding and the next header; from a server so much that few questions are asked.
const (
	readAhead       = 4096
	readAheadServer = 2 << 20
)

func aheadOf(from store.Store) int64 {
	if from.Reads() > 0 {
		return readAheadServer
	}
	return readAhead
}

// object reads one version of an object in order, and passes over parts of it.
type object struct {
	ctx    context.Context
	from   store.Store
	object store.Object
	ahead  int64 // bytes that are read at once
	at     int64 // of the next byte
	begin  int64 // of buf in the object
	buf    []byte
}

// OpenObject looks at a file, and returns what reads it in order as it is now: a file that changes meanwhile is a
// *store.ChangedError. A context that ends ends reads. Nothing need be closed.
func OpenObject(ctx context.Context, from store.Store, name string) (io.Reader, store.Attributes, error) {
	o, a, err := openObject(ctx, from, name)
	if err != nil {
		return nil, a, err
	}
	return o, a, nil
}

// openObject looks at a file.
func openObject(ctx context.Context, from store.Store, name string) (*object, store.Attributes, error) {
	a, err := from.Stat(ctx, name)
	if err != nil {
		return nil, a, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if a.Kind != store.KindFile {
		return nil, a, wrong("%s: %v", name, store.ErrNoFile)
	}
	room := append(make([]byte, 0, len(name)+1), name...) // a store may write behind it
	o := store.Object{Name: room, Size: a.Size, Modified: a.Modified, Version: []byte(a.Version), Inode: a.Inode, Changed: a.Changed}
	return &object{ctx: ctx, from: from, object: o, ahead: aheadOf(from)}, a, nil
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	if o.at >= o.object.Size {
		return 0, io.EOF
	}
	if n := min(int64(len(p)), o.object.Size-o.at); n >= o.ahead { // there is nothing to keep for the next read
		err := o.from.ReadAt(o.ctx, &o.object, p[:n], o.at)
		if err != nil {
			return 0, errors.Join(o.ctx.Err(), err)
		}
		o.at += n
		return int(n), nil
	}
	if o.at < o.begin || o.at >= o.begin+int64(len(o.buf)) {
		if err := o.ctx.Err(); err != nil {
			return 0, err
		}
		n := min(o.ahead, o.object.Size-o.at)
		o.buf, o.begin = append(o.buf[:0], make([]byte, n)...), o.at
		if err := o.from.ReadAt(o.ctx, &o.object, o.buf, o.at); err != nil {
			o.buf = o.buf[:0]
			return 0, err
		}
	}
	n := copy(p, o.buf[o.at-o.begin:])
	o.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.object.Size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d", offset)
	}
	o.at = offset
	return offset, nil
}
