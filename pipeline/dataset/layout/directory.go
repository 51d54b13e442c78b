package layout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"syscall"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// folder is a directory that was read: its pictures in order, and the names of the folders in it in order. names holds
// the pictures' names.
type folder struct {
	store.Attributes        // from before it was read
	path             string // below the root
	up               *folder
	below            []string
	pictures         []picture
	names            []byte
	versions         []byte // of objects
}

// picture is a file's. Of an object modified says where its version lies in versions.
type picture struct {
	start, end     uint32
	size, modified int64
}

func (f *folder) name(p picture) []byte { return f.names[p.start:p.end] }

// maxVersionBytes is how long a version may be.
const maxVersionBytes = 1<<16 - 1

// keepVersion takes note of an object's version, and returns what picture.modified is.
func (f *folder) keepVersion(version string) int64 {
	begin := len(f.versions)
	f.versions = append(f.versions, version...)
	return int64(begin)<<16 | int64(len(version))
}

// sample is a picture's line of a manifest.
func (f *folder) sample(key []byte, p picture) manifest.Sample {
	s := manifest.Sample{Key: key, Size: p.size, ModifiedNanos: p.modified}
	if len(f.versions) > 0 {
		begin := p.modified >> 16
		s.ModifiedNanos, s.Version = 0, f.versions[begin:begin+p.modified&maxVersionBytes]
	}
	return s
}

func (f *folder) key(name []byte) string {
	if f.path == "" {
		return string(name)
	}
	return f.path + "/" + string(name)
}

// read lists the folder path below the root. up is the folder that holds it; none for the root itself, whose pictures
// are no samples: they are listed without a look at them.
func (s *scanner) read(ctx context.Context, path string, up *folder) (*folder, error) {
	buf := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buf)
	question := s.lookers.questions.Ask(path, false)
	s.lookers.slow()
	d, err := s.root.OpenDirectory(ctx, path, *buf)
	question.End()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: cmp.Or(path, "."), Err: err}
	}
	defer d.Close()
	f := &folder{path: path, up: up}
	if f.Attributes, err = d.Attributes(); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: cmp.Or(path, "."), Err: err}
	}
	if err := f.checkLoop(); err != nil {
		return nil, err
	}
	question = s.lookers.questions.Ask(path, true)
	err = f.reserve(d)
	question.End()
	if err != nil {
		return nil, err
	}
	if err := s.entries(ctx, f, d); err != nil {
		return nil, err
	}
	slices.SortFunc(f.pictures, func(a, b picture) int { return compareNames(f.name(a), f.name(b)) })
	slices.SortFunc(f.below, compareNames[string])
	return f, nil
}

func (f *folder) checkLoop() error {
	for up := f.up; up != nil; up = up.up {
		if up.Inode == f.Inode && up.Device == f.Device {
			holder := "the root of the data"
			if up.path != "" {
				holder = fmt.Sprintf("the folder %q that holds it", up.path)
			}
			return fmt.Errorf("%w: %s leads back to %s: remove the link", ErrLayout, f.path, holder)
		}
	}
	return nil
}

// reserve makes room for the pictures of a huge folder by counting them first, since lists that grow take twice the memory.
// It goes by the directory's own size, where the file system tells one: some 40 bytes per entry.
func (f *folder) reserve(d store.Directory) error {
	const huge = 4 << 20
	if f.Size < huge {
		return nil
	}
	pictures, nameBytes := 0, 0
	for {
		name, _, err := d.Next()
		if errors.Is(err, io.EOF) {
			f.pictures, f.names = make([]picture, 0, pictures), make([]byte, 0, nameBytes)
			return d.Rewind()
		}
		if err != nil {
			return readError(f, err)
		}
		if isPicture(name) {
			pictures++
			nameBytes += len(name)
		}
	}
}

func readError(f *folder, err error) error {
	return &fs.PathError{Op: "read", Path: cmp.Or(f.path, "."), Err: err}
}

// settle adds what a name stands for. ImageFolder takes everything with a picture's ending that is no folder; what of it could
// not be read as a file is an error here, since a list without it would have other indices.
func (f *folder) settle(name []byte, e *entry) error {
	if e.kind == store.KindFolder {
		f.below = append(f.below, string(name))
		return nil
	}
	if !e.look && !e.known {
		return f.add(name, store.Attributes{}) // of the root
	}
	isPicture := isPicture(name)
	isSample := isPicture && f.up != nil
	switch a, err := e.attributes, e.err; {
	case err != nil && !isSample && store.LeadsNowhere(err):
		return nil
	case err != nil && store.LeadsNowhere(err):
		return fmt.Errorf("%w: the link leads nowhere; remove it, or bring the file that it names", &fs.PathError{Op: "stat", Path: f.key(name), Err: err})
	case err != nil:
		return &fs.PathError{Op: "stat", Path: f.key(name), Err: err}
	case a.Kind == store.KindFolder:
		f.below = append(f.below, string(name))
		return nil
	case !isPicture:
		return nil
	case a.Kind != store.KindFile:
		return fmt.Errorf("%w: %w", ErrLayout, &fs.PathError{Op: "scan", Path: f.key(name), Err: store.ErrNoFile})
	default:
		return f.add(name, a)
	}
}

func (f *folder) add(name []byte, a store.Attributes) error {
	if len(f.path)+1+len(name) > manifest.MaxKeyBytes {
		return &fs.PathError{Op: "scan", Path: f.key(name), Err: syscall.ENAMETOOLONG}
	}
	start := len(f.names)
	if uint64(start)+uint64(len(name)) > math.MaxUint32 {
		return fmt.Errorf("%s: more than 4 GiB of names in one folder", f.path)
	}
	f.names = append(f.names, name...)
	modified := a.Modified
	if a.Version != "" {
		modified = f.keepVersion(a.Version)
	}
	f.pictures = append(f.pictures, picture{uint32(start), uint32(len(f.names)), a.Size, modified})
	return nil
}
