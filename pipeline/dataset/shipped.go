package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/dataset/layout"
	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// A list may lie beside its data, made once by `feedwater snapshot`, so that nodes need not look for the samples themselves. It is a manifest
// without a root: two files in a folder, see shippedFolder:
//
//	<fingerprint>.snapshot   the manifest
//	<name>.list              the fingerprint of the list of a place, in hex, and in a bucket the digest of versions on a line of its own; see
//	                         shippedName
//
// It holds as long as what it watches is as it was: tar files, lists, Parquet files, and the directories of class folders on a disk. Of class folders
// in a bucket it is the data set, whatever was added since.

const (
	snapshotEnding = ".snapshot"
	pointerEnding  = ".list"
)

// ListFiles are what `feedwater snapshot` writes.
type ListFiles struct {
	// Folder they belong in, so that whoever opens the place finds them: a path or an URL.
	Folder string
	// List is the name of the list, Pointer that of the file that says which one it is, with that text.
	List, Pointer, PointerText string
	// Samples in the list, and their fingerprint.
	Samples     int
	Fingerprint string
}

// WriteList looks for the samples of a place and writes their list. Errors are those of Open.
func WriteList(ctx context.Context, place string, options Options, to io.Writer) (ListFiles, error) {
	o := options.withDefaults()
	o.Flat, o.Empty = true, true // as nodes open it; they refuse what their plans do not take
	s := &Snapshot{maxBytes: o.MaxEncodedBytes}
	files, err := opening{s}.writeList(ctx, place, o, to)
	if err = errors.Join(err, s.Close()); err != nil {
		return ListFiles{}, fmt.Errorf("list data set %s: %w", WithoutSecrets(place), err)
	}
	return files, nil
}

func (s opening) writeList(ctx context.Context, place string, o Options, to io.Writer) (ListFiles, error) {
	if err := s.openSource(place, &o); err != nil {
		return ListFiles{}, err
	}
	found, err := layoutOf(ctx, s.source, s.path, s.part, o)
	if err != nil {
		return ListFiles{}, err
	}
	list, err := s.scanTo(ctx, found, "", &o, to)
	if err != nil {
		return ListFiles{}, err
	}
	f := ListFiles{
		Folder: shippedFolder(s.path, s.part), Pointer: shippedName(s.path, s.part, &o) + pointerEnding,
		Samples: list.Samples(), Fingerprint: hex.EncodeToString(list.Fingerprint()),
	}
	f.List, f.PointerText = f.Fingerprint+snapshotEnding, pointerText(f.Fingerprint, hex.EncodeToString(list.Versions()))
	return f, nil
}

// shippedFolder is where lists of a place lie: in the folder of a part; beside a folder on a disk, in which another folder would be a class; and
// within one on a server.
func shippedFolder(folder, part string) string {
	if part == "" && !store.IsURL(folder) {
		folder = filepath.Dir(folder)
	}
	return Join(folder, layout.ListFolder)
}

// shippedName names the list of a place among those of its folder, the same for all who read the data, wherever they have them.
func shippedName(folder, part string, o *Options) string {
	base := ""
	if part == "" && !store.IsURL(folder) {
		base = filepath.Base(folder)
	}
	names := []string{base, filepath.ToSlash(part), o.Label, o.Values, o.Image}
	if o.Layout != "" {
		names = append(names, o.Layout)
	}
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// pointerText is what says which list a place has. Where an object was replaced by one of the same size the list has the old fingerprint, and other
// versions.
func pointerText(fingerprint, versions string) string {
	if versions == "" {
		return fingerprint + "\n"
	}
	return fingerprint + "\n" + versions + "\n"
}

// shippedPointer tells the fingerprint of the list which lies beside the data, and its versions; "": none does.
func (s opening) shippedPointer(ctx context.Context, from store.Store, o *Options) (fingerprint, text string) {
	var b bytes.Buffer
	err := copyObject(ctx, from, shippedName(s.path, s.part, o)+pointerEnding, 4*sha256.Size+2, &b)
	fingerprint, _, _ = strings.Cut(b.String(), "\n")
	if sum, decodeErr := hex.DecodeString(fingerprint); err != nil || decodeErr != nil || len(sum) != sha256.Size {
		return "", ""
	}
	return fingerprint, b.String()
}

// openShipped opens the folder of lists; nil where no list can be.
func (s opening) openShipped(o *Options) store.Store {
	if o.Table != "" {
		return nil
	}
	from, err := openStore(shippedFolder(s.path, s.part), &Options{Within: o.Within, Alive: o.Alive})
	if err != nil {
		return nil
	}
	return from
}

// fetch takes the list that lies beside the data, if it is whole and still true. Whatever is wrong with it, the data tell.
func (s opening) fetch(ctx context.Context, o Options) bool {
	from := s.openShipped(&o)
	if from == nil {
		return false
	}
	defer func() { _ = from.Close() }() // it was read
	fingerprint, pointer := s.shippedPointer(ctx, from, &o)
	if fingerprint == "" {
		return false
	}
	list, err := s.cache.begin(ctx)
	if err != nil {
		return false
	}
	if err := copyObject(ctx, from, fingerprint+snapshotEnding, o.CacheBytes, list); err != nil {
		list.discard()
		return false
	}
	kept, err := list.commit()
	if err != nil {
		return false
	}
	if s.use(kept) == nil && s.fits(&o) && s.checkShipped(pointer) && s.current(ctx, o.Readers, true) {
		return true
	}
	kept.free()
	s.memory, s.manifest = memory{}, nil
	s.cache.remove()
	return false
}

// checkShipped reports whether a list is whole, of such a store and the one of a pointer.
func (s opening) checkShipped(pointer string) bool {
	var err error
	whole := func() bool {
		defer recoverFault(debug.SetPanicOnFault(true), &err)
		return s.manifest.CheckPages() == nil
	}()
	return whole && err == nil && pointerText(s.fingerprint, s.versions) == pointer && s.shipped &&
		(s.form&manifest.Versioned != 0) == store.IsURL(s.path)
}

// isNewest reports whether a list that was fetched is still the one that lies beside the data.
func (s opening) isNewest(ctx context.Context, o *Options) bool {
	from := s.openShipped(o)
	if from == nil {
		return false
	}
	defer func() { _ = from.Close() }() // it was read
	_, pointer := s.shippedPointer(ctx, from, o)
	return pointer == pointerText(s.fingerprint, s.versions)
}

// PutList writes the files of a list into a folder or below the URL of a bucket: the list, then the pointer to it. read has its size bytes.
func PutList(ctx context.Context, folder string, files *ListFiles, read io.ReaderAt, size int64) error {
	text := strings.NewReader(files.PointerText)
	if store.IsURL(folder) {
		if err := store.Put(ctx, folder, files.List, read, size); err != nil {
			return err
		}
		return store.Put(ctx, folder, files.Pointer, text, text.Size())
	}
	if err := os.MkdirAll(folder, 0o777); err != nil { //nolint:gosec // the list is for all who may read the data, as umask says
		return err
	}
	if err := putFile(filepath.Join(folder, files.List), io.NewSectionReader(read, 0, size)); err != nil {
		return err
	}
	return putFile(filepath.Join(folder, files.Pointer), text)
}

// putFile writes a file that is whole or not there.
func putFile(name string, from io.Reader) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// copyObject copies an object of at most so many bytes.
func copyObject(ctx context.Context, from store.Store, name string, most int64, to io.Writer) error {
	o, a, err := layout.OpenObject(ctx, from, name)
	if err != nil {
		return err
	}
	if a.Size > most {
		return fmt.Errorf("%s has %d bytes", path.Base(name), a.Size)
	}
	buf := make([]byte, max(1, min(a.Size, 4<<20)))
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, o, buf) // by this buffer, whatever else a writer has
	return err
}
