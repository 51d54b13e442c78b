// Package snapshots finds the data that plans name, below a node's roots, and shares each snapshot of a folder among
// all who use it. A path may not lead out of its root, and who may read which root is asked of a Permission. How a
// folder is scanned is the affair of a Scanner, and of what is in a snapshot nothing is known here but its fingerprint.
//
// Goroutines: each scan has one; Close waits for all of them.
package snapshots

import (
	"cmp"
	"context"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Permission says which roots may be read.
type Permission interface {
	// CheckRoot refuses a root that may not be read; have are the names of those that there are.
	CheckRoot(root string, have []string) error
	// AllowedRoots are those of have that may be read.
	AllowedRoots(have []string) []string
	// Name is the caller's identity.
	Name() string
}

// Tables finds the file of a list that an identity has given. It may wait for storage.
type Tables interface {
	Find(identity, table string) (string, error)
	// Folder is where they are kept.
	Folder() string
}

// Options of a Finder. Scanner and Storage are required; the zero value of all others works.
type Options struct {
	Scanner Scanner
	// Storage looks after the calls on the roots.
	Storage *bulkhead.Roots
	// Tables are the lists that callers have given; nil: none are taken.
	Tables Tables
	// Roots are the folders, or URLs, that plans may name, by name.
	Roots map[string]string
	// LinksBeneath refuses links that lead out of their root.
	LinksBeneath bool
	// AnyPath lets plans without a root name any absolute path.
	AnyPath bool
	// Idle is how long a snapshot is kept that nobody uses.
	Idle time.Duration
	// OnScan, if set, is told of each scan that ended well.
	OnScan func(took time.Duration)
}

// Finder finds the data that plans name, below the roots, and shares each snapshot among all who use it. Its methods
// may be called from many goroutines at once.
type Finder struct {
	options Options
	cache   *snapshotCache
}

// New returns one that has looked at nothing yet.
func New(o Options) *Finder {
	f := &Finder{options: o, cache: newSnapshotCache(o.Scanner, o.Idle)}
	if o.OnScan != nil {
		f.cache.onScan = o.OnScan
	}
	return f
}

// ListScans are the scans that have begun, of folders that may be told of, in order of their names.
func (f *Finder) ListScans(now time.Time, may func(Folder) bool) []*pb.Scan {
	return f.cache.listScans(now, may)
}

// CountFolders is the number of folders that have a snapshot.
func (f *Finder) CountFolders() int { return f.cache.countFolders() }

// CountWaiting is the number of callers that wait for scans.
func (f *Finder) CountWaiting() int { return f.cache.countWaiting() }

// Close ends all scans, closes what nobody uses, and waits for the scans. What is in use is closed by its last Release.
func (f *Finder) Close() { f.cache.closeCache() }

func (f *Finder) rootNames() []string { return slices.Sorted(maps.Keys(f.options.Roots)) }

func (f *Finder) hasRoot(name string) bool {
	_, ok := f.options.Roots[name]
	return ok
}

// Look says how well a folder is looked at. The zero value takes a snapshot that has the plan's fingerprint.
type Look struct {
	// Again looks whether the folder has changed.
	Again bool
	// Since, if set, takes no list that was made before. It is for Again alone.
	Since time.Time
}

// OpenSource finds the data that a plan names, if it may be read; the caller releases it.
func (f *Finder) OpenSource(ctx context.Context, who Permission, source pipeline.Source, look Look) (*Snapshot, error) {
	table, err := f.findTable(ctx, who, source.Table)
	if err != nil {
		return nil, err
	}
	if source.Root == "" && (source.Path == "" || !f.options.AnyPath) {
		return f.openByFingerprint(ctx, who, source, look)
	}
	if err := who.CheckRoot(source.Root, f.rootNames()); err != nil {
		return nil, err
	}
	folder, err := f.locateFolder(ctx, source)
	if err != nil {
		return nil, err
	}
	folder.Table, folder.Columns = table, source.Columns()
	pinned := source.Fingerprint
	if look.Again {
		pinned = ""
	}
	data, err := f.cache.openFolder(ctx, folder, nameSource(source), pinned, look.Since)
	return data, MarkMissing(source, err)
}

// RootOf is the root that the data of a source was found in: the one that it names, else the innermost that it lies in of
// those that may be read. Empty: it lies in none, as a path that a trainer's own process opens.
func (f *Finder) RootOf(who Permission, source pipeline.Source, data *Snapshot) string {
	if source.Root != "" {
		return source.Root
	}
	names := f.options.Storage.NamesOf(cmp.Or(data.folder.Beneath, data.folder.Path))
	allowed := who.AllowedRoots(slices.DeleteFunc(names, func(name string) bool { return !f.hasRoot(name) }))
	if len(allowed) == 0 {
		return ""
	}
	return allowed[0]
}

// findTable finds the file of a plan's list; empty: the plan names none.
func (f *Finder) findTable(ctx context.Context, who Permission, table string) (string, error) {
	if table == "" {
		return "", nil
	}
	if f.options.Tables == nil {
		return "", &batch.PlanError{Field: "source.table", Message: "is not taken by this node"}
	}
	root := f.options.Storage.Apart(f.options.Tables.Folder())
	return bulkhead.Do(ctx, root, "look for a table", func(func()) (string, error) { return f.options.Tables.Find(who.Name(), table) }, nil)
}

// locateFolder is the folder that a source names, without links. It lies below its root: a path may not climb out, and
// neither may a link on the way. (A link that somebody with write access swaps between this check and the scan is not
// guarded against.)
func (f *Finder) locateFolder(ctx context.Context, source pipeline.Source) (Folder, error) {
	wanted := string(source.Path)
	if source.Root == "" {
		if dataset.IsURL(wanted) {
			if err := dataset.CheckURL(dataset.FolderOf(wanted)); err != nil {
				return Folder{}, &MissingError{Cause: err}
			}
			return Folder{Path: wanted}, nil
		}
		if !filepath.IsAbs(wanted) {
			return Folder{}, &PathError{Path: wanted, Message: "is not absolute"}
		}
		return Folder{Path: filepath.Clean(wanted)}, nil
	}
	if !f.hasRoot(source.Root) {
		return Folder{}, &RootError{Root: filename.Brief(source.Root), Have: f.rootNames()}
	}
	if len(wanted) > maxPathBytes {
		return Folder{}, &PathError{source.Root, filename.Brief(wanted), "is too long"}
	}
	path := filepath.FromSlash(wanted)
	if path != "" && !filepath.IsLocal(path) {
		return Folder{}, &PathError{source.Root, wanted, "leads out of it"}
	}
	base, err := f.resolveRoot(ctx, source.Root)
	if err != nil {
		return Folder{}, MarkMissing(source, err)
	}
	if dataset.IsURL(base) {
		if dataset.HasOptions(wanted) { // it would ask another server, with this node's credentials
			return Folder{}, &PathError{source.Root, filename.Brief(wanted), "has options of an URL in it"}
		}
		return Folder{Path: dataset.Join(base, wanted)}, nil
	}
	folder, err := f.resolvePath(ctx, f.options.Storage.Of(base), filepath.Join(base, path))
	if err != nil {
		return Folder{}, MarkMissing(source, err)
	}
	if below, err := filepath.Rel(base, folder); err != nil || !filepath.IsLocal(below) {
		return Folder{}, &PathError{source.Root, wanted, "leads out of it"}
	}
	at := Folder{Path: folder}
	if f.options.LinksBeneath {
		at.Beneath = base
	}
	return at, nil
}

// maxPathBytes is Linux's longest path.
const maxPathBytes = 4095

// openByFingerprint finds data that is open, or that is a root as a whole, among what the caller may read.
func (f *Finder) openByFingerprint(ctx context.Context, who Permission, source pipeline.Source, look Look) (*Snapshot, error) {
	fingerprint := source.Fingerprint
	names := who.AllowedRoots(f.rootNames())
	if fingerprint == "" {
		return nil, &RootError{Have: names}
	}
	if data := f.findOpen(ctx, fingerprint, names, look.Since); data != nil {
		return data, nil
	}
	slices.SortStableFunc(names, func(a, b string) int { return f.delayOf(a) - f.delayOf(b) })
	whole := source
	whole.Path, whole.Fingerprint = "", ""
	for _, name := range names {
		whole.Root = name
		data, err := f.OpenSource(ctx, who, whole, Look{Again: true})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			continue // a root that is no data set itself
		}
		if data.Fingerprint() == fingerprint {
			return data, nil
		}
		data.Release()
	}
	return nil, &RootError{Fingerprint: fingerprint, Have: names}
}

// findOpen finds data that are open below roots, listed since some time; nil: there are none.
func (f *Finder) findOpen(ctx context.Context, fingerprint string, names []string, since time.Time) *Snapshot {
	data := f.cache.findFingerprint(fingerprint, f.selectBelow(ctx, names))
	if data == nil || since.IsZero() {
		return data
	}
	defer data.Release()
	fresh, err := f.cache.openFolder(ctx, data.folder.Folder, data.folder.name, "", since)
	if err != nil {
		return nil // as if it were not open: the roots tell
	}
	if fresh.Fingerprint() != fingerprint {
		fresh.Release()
		return nil
	}
	return fresh
}

// selectBelow reports whether a folder, without links, is one of these roots or lies in one. All folders that a node
// opens lie in some.
func (f *Finder) selectBelow(ctx context.Context, names []string) func(Folder) bool {
	if len(names) == len(f.options.Roots) {
		return func(Folder) bool { return true }
	}
	var bases []string
	for _, name := range names {
		if base, err := f.resolveRoot(ctx, name); err == nil {
			bases = append(bases, base)
		}
	}
	return func(folder Folder) bool {
		if folder.Beneath != "" { // of another root links may have led where this one's may not
			return slices.Contains(bases, folder.Beneath)
		}
		return slices.ContainsFunc(bases, func(base string) bool {
			return dataset.Holds(base, folder.Path)
		})
	}
}

// resolvePath is a place of a root, without links in the way to its folder. Storage that does not answer is
// a *bulkhead.HungError.
func (f *Finder) resolvePath(ctx context.Context, root *bulkhead.Root, path string) (string, error) {
	return bulkhead.Do(ctx, root, "look for "+path, func(func()) (string, error) { return dataset.Resolve(path) }, nil)
}

// resolveRoot is a root's folder without links.
func (f *Finder) resolveRoot(ctx context.Context, name string) (string, error) {
	folder := f.options.Roots[name]
	root := f.options.Storage.Add(name, folder)
	base, err := f.resolvePath(ctx, root, folder)
	if err == nil {
		root.Means(base)
	}
	return base, err
}

// delayOf is how long the storage of a root lets its callers wait: roots are looked into in this order, so that others
// are found first.
func (f *Finder) delayOf(name string) int {
	return int(f.options.Storage.Add(name, f.options.Roots[name]).Delay() / time.Second)
}

// SelectFolders tells which folders' scans a source may wait for.
func (f *Finder) SelectFolders(ctx context.Context, who Permission, source pipeline.Source) (func(Folder) bool, error) {
	if source.Root == "" && (source.Path == "" || !f.options.AnyPath) {
		return f.selectBelow(ctx, who.AllowedRoots(f.rootNames())), nil // found by its fingerprint
	}
	if err := who.CheckRoot(source.Root, f.rootNames()); err != nil {
		return nil, err
	}
	folder, err := f.locateFolder(ctx, source)
	return func(one Folder) bool { return one.Path == folder.Path && one.Beneath == folder.Beneath }, err
}

// nameSource is what people know the folder of a source by: root and path, as a Loader names it.
func nameSource(source pipeline.Source) string {
	if source.Root == "" {
		return string(source.Path)
	}
	return path.Join(source.Root, string(source.Path))
}
