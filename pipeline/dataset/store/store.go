// Package store reads objects: files below a folder. It knows no pictures, and no data sets. A Store reads one
// version of an object and no other: what was listed is what is read, or the error says that it changed. It starts no
// goroutines.
package store

import (
	"context"
	"errors"
)

// A Store has objects. All methods may be called by many goroutines at once.
type Store interface {
	// ReadAt fills p with the bytes of an object from offset off on. It reads the version that o tells and no other:
	// of an object that was changed or removed the error is a *ChangedError. All other errors are this machine's
	// trouble, a *fs.PathError with the object's name among them. A cancelled context ends it, but for calls of the
	// system, which nothing ends. When p is filled nothing was allocated.
	ReadAt(ctx context.Context, o *Object, p []byte, off int64) error
	// Close gives back what the store holds open. Nothing may be called afterwards.
	Close() error
}

// Object is one version of what a store holds.
type Object struct {
	// Name is the path below the store's folder, with slashes on every system. A store may write behind its end, up
	// to its capacity.
	Name []byte
	// Size in bytes.
	Size int64
	// Modified is the time of a file's last change, in nanoseconds since 1970: its version.
	Modified int64
}

// ChangedError says that an object is not the version that was listed.
type ChangedError struct {
	// Name of the object.
	Name string
	// What differs, in words that follow the name.
	What string
}

// Error names the object and what differs.
func (e *ChangedError) Error() string { return e.Name + " " + e.What }

// ErrNoFile says that a name stands for a device, a FIFO or the like.
var ErrNoFile = errors.New("not a regular file")
