package snapshots

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// RootError says that a node serves no root of that name.
type RootError struct {
	// Root that was asked for; empty where only a fingerprint was given.
	Root        string
	Fingerprint string
	// Have are the names of those it serves.
	Have []string
}

func (e *RootError) Error() string {
	have := "it serves none"
	if len(e.Have) > 0 {
		have = "it serves " + strings.Join(e.Have, ", ")
	}
	switch {
	case e.Root != "":
		return fmt.Sprintf("this node serves no root %q; %s", e.Root, have)
	case e.Fingerprint != "":
		return fmt.Sprintf("this node has no data with fingerprint %.12s; name a root and a path: %s", e.Fingerprint, have)
	}
	return "the plan names no root; " + have
}

// PathError says that a path may not be served.
type PathError struct{ Root, Path, Message string }

func (e *PathError) Error() string {
	return fmt.Sprintf("path %q of root %q %s", e.Path, e.Root, e.Message)
}

// MissingError says that there is no data set at a place.
type MissingError struct {
	Root, Path string
	Cause      error
}

func (e *MissingError) Error() string {
	if e.Root == "" {
		return e.Cause.Error()
	}
	return fmt.Sprintf("path %q of root %q: %v", e.Path, e.Root, e.Cause)
}

func (e *MissingError) Unwrap() error { return e.Cause }

// MarkMissing marks errors that say that there is no data set, or none for this process: trying again would not help.
func MarkMissing(source pipeline.Source, err error) error {
	for _, cause := range []error{
		fs.ErrNotExist, fs.ErrPermission, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL, dataset.ErrLayout, dataset.ErrUnreadable,
	} {
		if errors.Is(err, cause) {
			return &MissingError{source.Root, dataset.WithoutSecrets(string(source.Path)), err}
		}
	}
	return err
}
