// Package store reads objects: files below a folder, what a bucket has below a prefix, what a web server has below an
// URL. It knows no pictures, and no data sets. A Store reads one version of an object and no other: what was listed is
// what is read, or the error says that it changed. What a server does not answer, or answers with trouble that may
// pass, is asked again within RemoteOptions.Within. A read that takes long has a second one beside it, in a goroutine
// that the read waits for; other questions have one or two. No others are started.
package store

import (
	"context"
	"errors"
)

// A Store has objects in folders. Names are paths below its place, with slashes; "" is the place itself. All methods
// may be called by many goroutines at once.
//
// A Store on a server also has Identity() string, which package dataset asks for by a type assertion. It names the
// place, the same however that is written, for what is kept about its objects. Of a Store without it the path does.
// And one that others may read too has Origin() string, which names the server, and the bucket in it: of one origin an
// object has one version, whoever asks.
type Store interface {
	// Stat tells what a name stands for now; it follows links. Where it leads nowhere the error is one of those that
	// LeadsNowhere knows.
	Stat(ctx context.Context, name string) (Attributes, error)
	// OpenDirectory begins to list a folder; buf is working memory, which may be nil.
	OpenDirectory(ctx context.Context, name string, buf []byte) (Directory, error)
	// ReadAt fills p with the bytes of an object from offset off on. It reads the version that o tells and no other:
	// of an object that was changed or removed the error is a *ChangedError. All other errors are this machine's
	// trouble, a *fs.PathError with the object's name among them. A cancelled context ends it, but for calls of the
	// system, which nothing ends. When p is filled nothing was allocated.
	ReadAt(ctx context.Context, o *Object, p []byte, off int64) error
	// Reads is how many calls of ReadAt at once it answers with profit, since most of their time passes on the way; 0
	// of one that a few calls for each core keep busy.
	Reads() int
	// Close gives back what the store holds open. Nothing may be called afterwards.
	Close() error
}

// A Directory lists what lies directly in a folder. Next and Rewind are called by one goroutine, Stat by many.
type Directory interface {
	// Attributes are those of the folder itself.
	Attributes() (Attributes, error)
	// Next returns the entries in an order of the store's, and io.EOF after the last. The name is valid until the next
	// call.
	Next() (name []byte, kind Kind, err error)
	// Known is what the entry is that Next returned last, if the listing says so: then Stat need not be asked.
	Known() (Attributes, bool)
	// Stat tells what an entry stands for now; it follows links.
	Stat(name []byte) (Attributes, error)
	// Rewind goes back to the first entry.
	Rewind() error
	// Close gives the listing back.
	Close()
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
	// Version is that of an object that lies on a server, by the server's words; empty of files.
	Version []byte
	// Inode and Changed of a file are as in Attributes; 0: nobody knows.
	Inode   uint64
	Changed int64
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
