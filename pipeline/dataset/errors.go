package dataset

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/layout"
	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

var (
	// ErrClosed is returned by methods of a closed snapshot.
	ErrClosed = errors.New("the snapshot is closed")
	// ErrLayout is wrapped by Open's error when a folder is not laid out as an image folder.
	ErrLayout = layout.ErrLayout
	// ErrLeadsOut is wrapped by errors about links that lead out of Options.Beneath.
	ErrLeadsOut = store.ErrLeadsOut
	// ErrUnreadable is wrapped by errors that say that a place on a server cannot be read as it is: trying again would
	// not help.
	ErrUnreadable = store.ErrUnreadable
	// ErrDamaged is wrapped by errors about a list that is not whole. The next Open makes it anew.
	ErrDamaged = manifest.ErrDamaged
)

// ChangedError says that a file is not the one the snapshot lists.
type ChangedError struct {
	// Path is the sample's key.
	Path string
	// What differs, in words.
	What string
	// Listed is when the scan began that the snapshot is of. It may be another process's, in an earlier run.
	Listed time.Time
	// Shipped says that the list lay beside the data, and is to be made anew there.
	Shipped bool
}

// Error says which file changed, how, and since when. Whether it did before the snapshot was opened is not known.
func (e *ChangedError) Error() string {
	listed := e.Listed.UTC().Format(time.RFC3339)
	if e.Shipped {
		return fmt.Sprintf("%s %s: it changed after %s, when the list that lies beside the data was made: make it anew by feedwater snapshot", e.Path, e.What, listed)
	}
	// Python knows the error by these words: CHANGED in python/feedwater/_engine.py.
	return fmt.Sprintf("%s %s: it changed after %s, when the listing that was kept of the data set was made", e.Path, e.What, listed)
}

// ValueError says that the samples have no value of that name.
type ValueError struct {
	Name string
	// In what they lie, in words.
	In string
}

// Error says so, and what has some.
func (e *ValueError) Error() string {
	return fmt.Sprintf("%s have no field %.99q: members of tar files and columns of lists, Parquet files and MDS are fields", e.In, e.Name)
}

// Is makes it an ErrLayout.
func (e *ValueError) Is(target error) bool { return target == ErrLayout }

// TooLargeError says that a file is larger than Options.MaxEncodedBytes. Nothing of it was read.
type TooLargeError struct {
	// Path is the sample's key.
	Path string
	// Size of the file and the Limit that it passes, in bytes.
	Size, Limit int64
}

// Error names the file, its size and the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, the limit is %d; raise MaxEncodedBytes if it is a picture", e.Path, e.Size, e.Limit)
}

// KeepError says that the list of a data set is not kept where it should be.
type KeepError struct {
	// Folder that it is kept in until the machine restarts; empty: it is kept in this process alone.
	Folder string
	// Cause that it is not kept where it should be.
	Cause error
}

// Error says where the list is kept, and why there.
func (e *KeepError) Error() string {
	where := "for this process alone"
	if e.Folder != "" {
		where = "in " + e.Folder + " until the machine restarts"
	}
	return fmt.Sprintf("the list of files is kept %s: %v", where, e.Cause)
}

// Unwrap is the Cause.
func (e *KeepError) Unwrap() error { return e.Cause }

// recoverFault, deferred, turns a fault on mapped memory into an error and restores the goroutine's setting: a manifest that is
// cut short or whose disk fails while it is mapped must not end the process.
func recoverFault(old bool, err *error) {
	debug.SetPanicOnFault(old)
	r := recover()
	if r == nil {
		return
	}
	fault, ok := r.(interface{ Addr() uintptr })
	if !ok {
		panic(r)
	}
	*err = fmt.Errorf("%w: its file cannot be read at address %#x", ErrDamaged, fault.Addr())
}
