package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/layout"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// CheckServer asks for a place on a server whether there is such a bucket, whether this process may read it, and whether something of that name lies
// there. What will not pass by itself is an error; of a server that does not answer all of that within so much time it is an *UnansweredError.
func CheckServer(ctx context.Context, place string, within time.Duration) error {
	folder, part, err := split(place)
	if err != nil {
		return err
	}
	from, err := store.OpenURL(folder, store.RemoteOptions{Within: within})
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was asked
	return checkPlace(ctx, from, folder, part, within)
}

// UnansweredError says that a server may yet answer.
type UnansweredError struct{ cause error }

// Error says what came of the question.
func (e *UnansweredError) Error() string { return e.cause.Error() }

// Unwrap returns what came of the question.
func (e *UnansweredError) Unwrap() error { return e.cause }

// checkPlace asks for a part of a folder, or for the folder where that is empty.
func checkPlace(ctx context.Context, from store.Store, folder, part string, within time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if part != "" {
		err = layout.CheckNames(ctx, from, part)
	} else {
		err = checkFolder(ctx, from, folder)
	}
	for _, lasting := range []error{fs.ErrNotExist, fs.ErrPermission, store.ErrUnreadable, ErrLayout} {
		if errors.Is(err, lasting) {
			return err
		}
	}
	if err != nil {
		return &UnansweredError{err}
	}
	return nil
}

// checkFolder looks for a first entry.
func checkFolder(ctx context.Context, from store.Store, folder string) error {
	d, err := from.OpenDirectory(ctx, "", nil)
	if errors.Is(err, store.ErrNotListed) { // what lies below it is asked for by name
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	if _, _, err = d.Next(); errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: nothing lies below %s", fs.ErrNotExist, folder)
	}
	return err
}
