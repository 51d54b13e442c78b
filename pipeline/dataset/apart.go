package dataset

import (
	"context"
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/dataset/layout"
)

// Apart is a folder that whoever opens data sets writes into. Among class folders it would be a class, and whatever is written there would change the
// data set.
type Apart struct {
	// What says for people which folder it is, and what names another one.
	What string
	// Folder is its path, absolute and without links. It must come back soon.
	Folder func() string
}

// ApartError is Open's error where a folder of Options.Apart lies in class folders.
type ApartError struct{ What, Folder string }

// Error implements error.
func (e *ApartError) Error() string {
	return fmt.Sprintf("%s lies in it, as %s: every folder there is a class, and what is written there changes the data set; name a folder elsewhere", e.What, e.Folder)
}

// Is makes it an ErrLayout.
func (e *ApartError) Is(target error) bool { return target == ErrLayout }

// checkApart returns an *ApartError, before anything is written. The storage is asked only where there is likely to be one: for how the data is laid out.
func (s opening) checkApart(ctx context.Context, o *Options) error {
	if IsURL(s.path) {
		return nil
	}
	for _, a := range o.Apart {
		folder := a.Folder()
		if !Holds(s.path, folder) {
			continue
		}
		if found, err := layoutOf(ctx, s.source, s.path, s.part, *o); err == nil && isFolder(found) { // the scan says what is wrong otherwise
			return &ApartError{What: a.What, Folder: folder}
		}
	}
	return nil
}

func isFolder(l layout.Layout) bool {
	_, is := l.(layout.Folder)
	return is
}
