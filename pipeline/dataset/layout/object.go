package layout

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// readAhead is how much of an object is read at once where it is read in order. Behind a member that is passed over
// lie its padding and the next header.
const readAhead = 4096

// object reads one version of an object in order, and passes over parts of it.
type object struct {
	ctx    context.Context
	from   store.Store
	object store.Object
	at     int64 // of the next byte
	begin  int64 // of buf in the object
	buf    []byte
}

// openObject looks at a file.
func openObject(ctx context.Context, from *store.Files, name string) (*object, store.Attributes, error) {
	a, err := from.Stat(name)
	if err != nil {
		return nil, a, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if a.Kind != store.KindFile {
		return nil, a, wrong("%s: %v", name, store.ErrNoFile)
	}
	room := append(make([]byte, 0, len(name)+1), name...) // a store may write behind it
	return &object{ctx: ctx, from: from, object: store.Object{Name: room, Size: a.Size, Modified: a.Modified}}, a, nil
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	if o.at >= o.object.Size {
		return 0, io.EOF
	}
	if o.at < o.begin || o.at >= o.begin+int64(len(o.buf)) {
		if err := o.ctx.Err(); err != nil {
			return 0, err
		}
		n := min(readAhead, o.object.Size-o.at)
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
