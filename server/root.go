package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/server/admission"
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

// snapshot finds the data that a plan names; the caller releases it. With again set the folder is looked at again, else a
// snapshot that has the plan's fingerprint is good enough.
func (s *Server) snapshot(ctx context.Context, source pipeline.Source, again bool) (*snapshot, error) {
	if source.Root == "" && (source.Path == "" || !s.options.AnyPath) {
		return s.byFingerprint(ctx, source.Fingerprint)
	}
	if err := admission.CallerOf(ctx).CheckRoot(source.Root, s.rootNames()); err != nil {
		return nil, err
	}
	folder, err := s.folder(ctx, source)
	if err != nil {
		return nil, err
	}
	pinned := source.Fingerprint
	if again {
		pinned = ""
	}
	data, err := s.library.open(ctx, folder, sourceName(source), pinned)
	return data, missing(source, err)
}

// missing marks errors that say that there is no data set, or none for this process: trying again would not help.
func missing(source pipeline.Source, err error) error {
	for _, cause := range []error{
		fs.ErrNotExist, fs.ErrPermission, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL, dataset.ErrLayout,
	} {
		if errors.Is(err, cause) {
			return &MissingError{source.Root, string(source.Path), err}
		}
	}
	return err
}

// folder is the folder that a source names, without links. It lies below its root: a path may not climb out, and neither may a
// link on the way. (A link that somebody with write access swaps between this check and the scan is not guarded against.)
func (s *Server) folder(ctx context.Context, source pipeline.Source) (Folder, error) {
	wanted := string(source.Path)
	if source.Root == "" {
		if !filepath.IsAbs(wanted) {
			return Folder{}, &PathError{Path: wanted, Message: "is not absolute"}
		}
		return Folder{Path: filepath.Clean(wanted)}, nil
	}
	if !isNamed(s.options.Roots, source.Root) {
		return Folder{}, &RootError{Root: filename.Brief(source.Root), Have: s.rootNames()}
	}
	if len(wanted) > maxPathBytes {
		return Folder{}, &PathError{source.Root, filename.Brief(wanted), "is too long"}
	}
	path := filepath.FromSlash(wanted)
	if path != "" && !filepath.IsLocal(path) {
		return Folder{}, &PathError{source.Root, wanted, "leads out of it"}
	}
	base, err := s.base(ctx, source.Root)
	if err != nil {
		return Folder{}, missing(source, err)
	}
	folder, err := s.resolve(ctx, s.roots.Of(base), filepath.Join(base, path))
	if err != nil {
		return Folder{}, missing(source, err)
	}
	if below, err := filepath.Rel(base, folder); err != nil || !filepath.IsLocal(below) {
		return Folder{}, &PathError{source.Root, wanted, "leads out of it"}
	}
	at := Folder{Path: folder}
	if s.options.LinksBeneath {
		at.Beneath = base
	}
	return at, nil
}

// maxPathBytes is Linux's longest path.
const maxPathBytes = 4095

// byFingerprint finds data that is open, or that is a root as a whole, among what the caller may read.
func (s *Server) byFingerprint(ctx context.Context, fingerprint string) (*snapshot, error) {
	names := admission.CallerOf(ctx).AllowedRoots(s.rootNames())
	if fingerprint == "" {
		return nil, &RootError{Have: names}
	}
	if data := s.library.find(fingerprint, s.below(ctx, names)); data != nil {
		return data, nil
	}
	slices.SortStableFunc(names, func(a, b string) int { return s.delay(a) - s.delay(b) })
	for _, name := range names {
		data, err := s.snapshot(ctx, pipeline.Source{Root: name}, true)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			continue // a root that is no data set itself
		}
		if data.Fingerprint() == fingerprint {
			return data, nil
		}
		data.release()
	}
	return nil, &RootError{Fingerprint: fingerprint, Have: names}
}

// below reports whether a folder, without links, is one of these roots or lies in one. All folders that a node opens lie in some.
func (s *Server) below(ctx context.Context, names []string) func(Folder) bool {
	if len(names) == len(s.options.Roots) {
		return func(Folder) bool { return true }
	}
	var bases []string
	for _, name := range names {
		if base, err := s.base(ctx, name); err == nil {
			bases = append(bases, base)
		}
	}
	return func(folder Folder) bool {
		if folder.Beneath != "" { // of another root links may have led where this one's may not
			return slices.Contains(bases, folder.Beneath)
		}
		return slices.ContainsFunc(bases, func(base string) bool {
			below, err := filepath.Rel(base, folder.Path)
			return err == nil && filepath.IsLocal(below)
		})
	}
}

func (s *Server) rootNames() []string { return slices.Sorted(maps.Keys(s.options.Roots)) }
