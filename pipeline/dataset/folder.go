package dataset

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
)

// kind is what a name stands for.
type kind uint8

const (
	kindUnknown kind = iota // a link, or the file system does not say: stat tells
	kindFile
	kindFolder
	kindOther // FIFO, socket, device
)

// attributes of a file or directory. Times are in nanoseconds since 1970; changed is the time that only the kernel sets.
type attributes struct {
	kind              kind
	size              int64
	modified, changed int64
	device, inode     uint64
}

// isStill reports whether a directory is the same one, with nothing added, removed or renamed in it. Devices get new numbers when
// the machine starts, so they do not count.
func (a attributes) isStill(b attributes) bool {
	return a.modified == b.modified && a.changed == b.changed && a.inode == b.inode
}

// folder is a directory that was read: its pictures in order, and the names of the folders in it in order. names holds
// the pictures' names.
type folder struct {
	attributes        // from before it was read
	path       string // below the root
	up         *folder
	below      []string
	pictures   []picture
	names      []byte
}

type picture struct {
	start, end     uint32
	size, modified int64
}

func (f *folder) name(p picture) []byte { return f.names[p.start:p.end] }

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
	question := s.lookers.questions.ask(path, false)
	s.lookers.slow()
	d, err := s.root.openDir(path, *buf)
	question.end()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: cmp.Or(path, "."), Err: err}
	}
	defer d.close()
	f := &folder{path: path, up: up}
	if f.attributes, err = d.attributes(); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: cmp.Or(path, "."), Err: err}
	}
	if err := f.checkLoop(); err != nil {
		return nil, err
	}
	question = s.lookers.questions.ask(path, true)
	err = f.reserve(d)
	question.end()
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
		if up.inode == f.inode && up.device == f.device {
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
func (f *folder) reserve(d *directory) error {
	const huge = 4 << 20
	if f.size < huge {
		return nil
	}
	pictures, nameBytes := 0, 0
	for {
		name, _, err := d.next()
		if errors.Is(err, io.EOF) {
			f.pictures, f.names = make([]picture, 0, pictures), make([]byte, 0, nameBytes)
			return d.rewind()
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
	if e.kind == kindFolder {
		f.below = append(f.below, string(name))
		return nil
	}
	if !e.look {
		return f.add(name, attributes{}) // of the root
	}
	isPicture := isPicture(name)
	isSample := isPicture && f.up != nil
	switch a, err := e.attributes, e.err; {
	case err != nil && !isSample && leadsNowhere(err):
		return nil
	case err != nil && leadsNowhere(err):
		return fmt.Errorf("%w: the link leads nowhere; remove it, or bring the file that it names", &fs.PathError{Op: "stat", Path: f.key(name), Err: err})
	case err != nil:
		return &fs.PathError{Op: "stat", Path: f.key(name), Err: err}
	case a.kind == kindFolder:
		f.below = append(f.below, string(name))
		return nil
	case !isPicture:
		return nil
	case a.kind != kindFile:
		return fmt.Errorf("%w: %w", ErrLayout, &fs.PathError{Op: "scan", Path: f.key(name), Err: errNoFile})
	default:
		return f.add(name, a)
	}
}

func (f *folder) add(name []byte, a attributes) error {
	if len(f.path)+1+len(name) > maxKeyBytes {
		return &fs.PathError{Op: "scan", Path: f.key(name), Err: syscall.ENAMETOOLONG}
	}
	start := len(f.names)
	if uint64(start)+uint64(len(name)) > math.MaxUint32 {
		return fmt.Errorf("%s: more than 4 GiB of names in one folder", f.path)
	}
	f.names = append(f.names, name...)
	f.pictures = append(f.pictures, picture{uint32(start), uint32(len(f.names)), a.size, a.modified})
	return nil
}

// leadsNowhere is what Python's is_dir answers with "no folder", without an error.
func leadsNowhere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR)
}
