// Package dataset turns folders, lists, tar and Parquet files of pictures, wherever they lie, into a snapshot, and that into samples and their bytes. Which
// files of a folder are samples, their order and their labels are exactly those of torchvision's ImageFolder. A snapshot lives in a
// manifest, one mapped file kept in a cache directory, so that opening it again costs one stat per directory, list or tar file. The package
// decodes nothing, orders nothing and knows no plan. Open runs at most Options.Readers goroutines that read directories, Options.Stats
// that ask about files, and one that puts their findings in order, and waits for them; nothing else here starts any.
package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/layout"
	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/readcache"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Options say how to open a data set. The zero value works.
type Options struct {
	// CacheDir keeps the manifests. Default: feedwater/snapshots in the user's cache directory. Where it cannot be written they are kept in a
	// folder of XDG_RUNTIME_DIR or /dev/shm that no other user can read, and where that cannot be either in the memory of this process.
	CacheDir string
	// CacheBytes is what all manifests in a folder may take. Those that were not opened for longest make room. Default 1 GiB.
	CacheBytes int64
	// Trouble is told, each time that a manifest cannot be kept in CacheDir, where it is kept and why: a *KeepError. Default: nobody is told.
	Trouble func(error)
	// Progress is told how many samples the scan has found so far, every few thousand and at the end; never by two
	// goroutines at once. It is not called when the cached manifest is good. Default: nobody is told.
	Progress func(samples int)
	// Readers is how many directories are read at once. Default 32.
	Readers int
	// Stats is how many files are asked about at once, at most: as many are as the storage answers with profit, those of one folder too.
	// Default 256; 1: one after the other in each directory.
	Stats int
	// Refresh scans even where the cached manifest looks good.
	Refresh bool
	// MaxEncodedBytes is the size of the largest file that Read reads. Default 256 MiB.
	MaxEncodedBytes int64
	// Alive, if set, is called by any goroutine of Open whenever the file system has answered, so that a scan that takes long is told from one
	// that stands still.
	Alive func()
	// OnRead, if set, is called by any goroutine whenever a read from a server has ended well, for as long as the snapshot is open.
	OnRead func()
	// Generation is that of the storage that the folder is opened in, see Snapshot.ReadIn.
	Generation uint64
	// CallFolder, if set, makes all calls on CacheDir, so that one that hangs keeps no data set from being opened: it is then as good as none.
	CallFolder CallFolder
	// Questions, if set, are those that the file system has not answered: of one Open at a time.
	Questions *Questions

	// ReadCache, if set, keeps what is read from servers, and what pages of Parquet files unpack to. The caller closes it, after the snapshot.
	ReadCache *readcache.Cache

	// Within is how long a server may take to answer a question, all tries together. Default 30 s.
	Within time.Duration

	// Beneath, if set, is a folder that no link may lead out of; the data set lies in it, or is it. An absolute path without links. Links that lead
	// out of it are errors that wrap ErrLeadsOut, of Open and of Read, also where they name no picture.
	Beneath string
	// Table, if set, is the file of a list, in JSON as layout.List reads it: the samples are what it lists below the place, which is a folder.
	// The file's name stands for its contents.
	Table string
	// Columns say what is listed of each sample.
	Columns
	// Flat takes a folder without folders in it too: its pictures are samples, of one class whose name is empty.
	Flat bool
	// Empty takes class folders without pictures too: as classes without samples, which keep their places among the labels.
	Empty bool
	// Apart are folders that must not lie in class folders, nor be them: an *ApartError of Open.
	Apart []Apart

	now  func() time.Time // tests stop the clock here
	slow func()           // called before each question to the storage; tests make it last here

	sharedMemory string        // where the machine's shared memory is
	patience     time.Duration // how long a scan of somebody else may stand still before one's own begins
}

// Columns say where labels, values and pictures are of data whose samples have columns or members, and how it is laid out. The zero value is
// for all others.
type Columns struct {
	// Label says where labels are, see layout.Choice, and Values, with commas between them, what else is listed of each sample. Both are for
	// lists, tables, tar and Parquet files.
	Label, Values string
	// Image is the column of Parquet files that has the pictures. Empty: the one that the files tell.
	Image string
	// Layout is how the data is laid out: "folder", "mds", "tar", "parquet", "csv", "tsv" or "jsonl". Empty: as names tell, and what lies in a
	// folder. Files may be called as they like where it is named.
	Layout string
}

func (o Options) withDefaults() Options {
	if o.Readers <= 0 {
		o.Readers = 32
	}
	if o.Stats <= 0 {
		o.Stats = 256
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = 1 << 30
	}
	if o.Trouble == nil {
		o.Trouble = func(error) {}
	}
	if o.sharedMemory == "" {
		o.sharedMemory = "/dev/shm"
	}
	if o.patience <= 0 {
		o.patience = time.Minute
	}
	if o.MaxEncodedBytes <= 0 {
		o.MaxEncodedBytes = 256 << 20
	}
	o.MaxEncodedBytes = min(o.MaxEncodedBytes, math.MaxInt/2)
	if o.Progress == nil {
		o.Progress = func(int) {}
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.slow == nil {
		o.slow = func() {}
	}
	return o
}

// Sample is one line of a snapshot.
type Sample = manifest.Sample

// Class is one class of a snapshot.
type Class = manifest.Class

// Value is what each sample of a snapshot has besides its picture; see Options.Values.
type Value = manifest.Value

// Questions are those that Open has asked the file system and that it has not answered.
type Questions = layout.Questions

// Snapshot is a frozen list of samples. All methods may be called by many goroutines at once.
type Snapshot struct {
	path        string // of the root, absolute, without links
	part        string // of it: a list or a pattern; empty: all
	cached      bool
	shipped     bool // the list lay beside the data
	classes     []Class
	values      []Value
	samples     int
	fingerprint string
	origin      string // of objects that have versions; empty: they have none, or the store is nobody else's
	versions    string // a digest of them, in hex
	listing     sync.Once
	content     string // a digest of what is listed, in hex, after listing
	bare        string // why samples have no labels, for people
	form        manifest.Form
	files       []manifest.Identity // of objects, see manifest.Identities
	listed      time.Time           // when the scan began
	maxBytes    int64
	cache       cache
	blocks      *readcache.Cache // nil: of nothing
	place       string           // in keys of blocks
	unpacking   namedLocks
	forget      sync.Once
	questions   *Questions
	generation  atomic.Uint64               // of the storage that source was opened in
	reopen      func() (store.Store, error) // opens path

	mu       sync.RWMutex // held for reading while manifest or source are in use, for writing by Close
	source   *source
	memory   memory
	manifest *manifest.Manifest // nil after Close
}

// opening is a snapshot while Open looks for its list: kept, beside the data, or made by a scan.
type opening struct{ *Snapshot }

// Open takes the snapshot of the pictures of a place, see Resolve: those below a folder, in a list, in tar or in Parquet files. It comes from the cache when no
// directory and no file that it depends on has changed since, else every directory, the list or the headers in the tar files are read. A cancelled
// context ends it between two reads. A place that is not laid out as it should be is an error that wraps ErrLayout. The caller must Close the
// snapshot.
func Open(ctx context.Context, path string, options Options) (*Snapshot, error) {
	o := options.withDefaults()
	s := &Snapshot{maxBytes: o.MaxEncodedBytes}
	if err := (opening{s}).open(ctx, path, o); err != nil {
		return nil, fmt.Errorf("open data set %s: %w", WithoutSecrets(path), errors.Join(err, s.Close()))
	}
	return s, nil
}

// openSource opens the store of a place.
func (s opening) openSource(path string, o *Options) error {
	absolute, err := absolutePlace(path)
	if err != nil {
		return err
	}
	s.questions = o.Questions
	s.questions.About(func() (store.Store, error) {
		folder, _, err := splitAs(absolute, o.Layout)
		if err != nil {
			return nil, err
		}
		return reopen(folder, o)
	})
	if s.path, s.part, err = splitAs(absolute, o.Layout); err != nil {
		return err
	}
	if o.Table != "" && s.part != "" {
		return fmt.Errorf("%w: a table lists files below a folder, not below %s", layout.ErrLayout, s.part)
	}
	files, err := openStore(s.path, o)
	if err != nil {
		return err
	}
	s.source = &source{Store: files}
	s.blocks, s.place = o.ReadCache, s.path
	if named, ok := files.(interface{ Identity() string }); ok {
		s.place = named.Identity()
	}
	if named, ok := files.(interface{ Origin() string }); ok {
		s.origin = named.Origin()
	}
	s.generation.Store(o.Generation)
	beneath := Options{Beneath: o.Beneath}
	s.reopen = func() (store.Store, error) { return openStore(s.path, &beneath) }
	if store.IsProgram(s.path) {
		s.path = store.WithoutSocket(s.path)
	}
	return nil
}

func (s opening) open(ctx context.Context, path string, o Options) error {
	if err := s.find(ctx, path, o); err != nil {
		return err
	}
	if s.Unlabelled() {
		s.bare = s.explainUnlabelled(ctx, o)
	}
	return unpacker(s).checkRoom()
}

// explainUnlabelled says where labels would have been, in words for people; empty: nobody knows.
func (s opening) explainUnlabelled(ctx context.Context, o Options) string {
	found, err := layoutOf(ctx, s.source, s.path, s.part, o)
	bare, ok := found.(interface {
		WhyUnlabelled(ctx context.Context, from store.Store, first string) string
	})
	if err != nil || !ok {
		return ""
	}
	first := ""
	if s.form&manifest.Members != 0 {
		first = string(s.manifest.Object(0).Name)
	}
	return bare.WhyUnlabelled(ctx, s.source, first)
}

// find takes a kept list, or scans.
func (s opening) find(ctx context.Context, path string, o Options) error {
	if err := s.openSource(path, &o); err != nil {
		return err
	}
	if err := s.checkApart(ctx, &o); err != nil {
		return err
	}
	s.cache = newCache(o, Join(s.path, s.part))
	var seen []int64
	if !o.Refresh && s.load(ctx, o, func(scanned int64) bool {
		seen = append(seen, scanned)
		return false
	}) {
		return nil
	}
	lock, err := s.cache.lockScan(ctx, o)
	if err != nil {
		return err
	}
	defer lock.end()
	defer context.AfterFunc(ctx, lock.end)()
	if !o.Refresh && s.load(ctx, o, func(scanned int64) bool { return !slices.Contains(seen, scanned) }) {
		return nil // somebody else has scanned it meanwhile
	}
	if !o.Refresh && s.fetch(ctx, o) {
		return nil
	}
	o.Progress = lock.tell
	return s.scan(ctx, o)
}

// load reports whether there is a kept list that is whole, of this root and still true. justMade says of a list, by when its scan began, whether
// it was made since this Open began.
func (s opening) load(ctx context.Context, o Options, justMade func(scanned int64) bool) bool {
	s.cached = s.cache.find(ctx, func(m memory) bool {
		if s.use(m) != nil || !s.fits(&o) {
			return false
		}
		if s.shipped {
			return s.isNewest(ctx, &o) && s.current(ctx, o.Readers, true)
		}
		return s.current(ctx, o.Readers, justMade(s.listed.UnixNano()))
	})
	if !s.cached {
		s.memory, s.manifest = memory{}, nil
	}
	return s.cached
}

// fits reports whether such a list is taken.
func (s opening) fits(o *Options) bool {
	return (o.ReadCache != nil || s.form&manifest.Packed == 0) && (o.Flat || !s.Flat()) && (o.Empty || len(s.emptyClasses()) == 0)
}

// scan looks for the samples. Where the folder of lists takes half a list, and cannot give that back, it begins anew without that folder.
func (s opening) scan(ctx context.Context, o Options) error {
	kept, err := s.list(ctx, o)
	var lost *lostError
	if errors.As(err, &lost) {
		s.cache.avoid(lost.cause)
		kept, err = s.list(ctx, o)
	}
	if err != nil {
		return err
	}
	return s.use(kept)
}

// list looks for the samples and keeps the list of them.
func (s opening) list(ctx context.Context, o Options) (memory, error) {
	found, err := layoutOf(ctx, s.source, s.path, s.part, o)
	if err != nil {
		return memory{}, err
	}
	list, err := s.cache.begin(ctx)
	if err != nil {
		return memory{}, err
	}
	if _, err := s.scanTo(ctx, found, s.path, &o, list); err != nil {
		list.discard()
		return memory{}, err
	}
	return list.commit()
}

// scanTo writes the list of what a layout finds, as one of a root.
func (s opening) scanTo(ctx context.Context, found layout.Layout, root string, o *Options, to io.Writer) (*manifest.Builder, error) {
	list := manifest.NewBuilder(to, s.formOf(found), root, o.now().UnixNano())
	if err := found.Scan(ctx, s.source.Store, s.forLayout(o), list); err != nil {
		return nil, err
	}
	return list, list.Finish()
}

// formOf is the form of a layout's samples in this store.
func (s opening) formOf(found layout.Layout) manifest.Form {
	if store.IsURL(s.path) {
		return found.Form() | manifest.Versioned
	}
	return found.Form()
}

// forLayout are the options of a layout's scan.
func (s opening) forLayout(o *Options) layout.Options {
	return layout.Options{
		Progress: o.Progress, Readers: o.Readers, Stats: o.Stats, Questions: o.Questions, Slow: o.slow,
		Unpacked: unpacker(s).keepUnpacked(),
	}
}

// use checks a manifest and makes it the snapshot's.
func (s *Snapshot) use(m memory) (err error) {
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	list, err := manifest.Parse(m.data)
	if err != nil {
		return err
	}
	if list.Root() != s.path && list.Root() != "" {
		return fmt.Errorf("%w: it belongs to %s", manifest.ErrDamaged, list.Root())
	}
	s.memory, s.manifest = m, list
	s.shipped = list.Root() == ""
	s.samples, s.classes, s.form = list.Samples(), list.Classes(), list.Form()
	s.values, s.files = list.Values(), list.Identities()
	s.fingerprint = hex.EncodeToString(list.Fingerprint())
	s.versions = hex.EncodeToString(list.Versions())
	s.listed = time.Unix(0, list.Scanned())
	return nil
}

// Len is the number of samples.
func (s *Snapshot) Len() int { return s.samples }

// Fingerprint is a SHA-256 over class names, labels, file names and sizes, in hex: the same pictures in another place or with
// other times have the same fingerprint.
func (s *Snapshot) Fingerprint() string { return s.fingerprint }

// Versions are two digests in hex: of the server and the bucket that the data lie in, and of the versions of all objects
// there. Equal fingerprints do not tell whether an object was replaced by one of the same size; where the first are
// equal, the second do. Of files, and of what a program reads, they are empty: copies of files differ in their times.
func (s *Snapshot) Versions() (store, versions string) {
	if s.origin == "" {
		return "", ""
	}
	sum := sha256.Sum256([]byte(s.origin))
	return hex.EncodeToString(sum[:]), s.versions
}

// Listing is a digest, in hex, of the samples with the times of their files, or with their versions. Where it is the same
// for two lists of one place, what is read by one is what is read by the other, for each file is compared with its line.
// It is empty of a list that lies beside the data, which is not made anew, of what a program reads, and of a list that
// cannot be read.
func (s *Snapshot) Listing() string {
	if s.shipped || store.IsProgram(s.path) {
		return ""
	}
	s.listing.Do(func() {
		content, err := s.digestContent()
		if err == nil {
			s.content = hex.EncodeToString(content)
		}
	})
	return s.content
}

func (s *Snapshot) digestContent() (content []byte, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.manifest == nil {
		return nil, ErrClosed
	}
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	return s.manifest.Content()
}

// Classes lists the classes in label order. The caller must not change the slice.
func (s *Snapshot) Classes() []Class { return s.classes }

// Values are what each sample has besides its picture, as Options.Values names them. The caller must not change the slice.
func (s *Snapshot) Values() []Value { return s.values }

// ValuesInFiles reports whether values lie in files, with the pictures, so that Read brings both; else At does.
func (s *Snapshot) ValuesInFiles() bool { return len(s.values) > 0 && !s.form.HoldsValues() }

// Flat reports whether the pictures lie in the root itself, without classes; see Options.Flat.
func (s *Snapshot) Flat() bool { return len(s.classes) == 1 && s.classes[0].Name == "" }

// emptyClasses are the names of the classes that have no sample.
func (s *Snapshot) emptyClasses() (names []string) {
	if s.form&manifest.Labelled != 0 { // a list names its classes, and need not have samples of each
		return nil
	}
	for _, c := range s.classes {
		if c.Samples == 0 {
			names = append(names, c.Name)
		}
	}
	return names
}

// Unlabelled reports whether the samples have no labels.
func (s *Snapshot) Unlabelled() bool { return s.form&manifest.Unlabelled != 0 }

// WhyUnlabelled says where labels would have been, for people; it may be empty.
func (s *Snapshot) WhyUnlabelled() string { return s.bare }

// CheckEmpty returns the error of Open without Options.Empty if a class has no sample.
func (s *Snapshot) CheckEmpty() error {
	if names := s.emptyClasses(); len(names) > 0 {
		return fmt.Errorf("open data set %s: %w", s.path, layout.EmptyClasses(names))
	}
	return nil
}

// CheckClasses returns the error of Open without Options.Flat if the snapshot is flat.
func (s *Snapshot) CheckClasses() error {
	if !s.Flat() {
		return nil
	}
	first, err := s.At(0, nil)
	if err != nil {
		return err
	}
	return fmt.Errorf("open data set %s: %w", s.path, layout.FlatFolder(s.samples, first.Key))
}

// Ahead is how many reads at once are begun with profit before somebody needs what they bring; 0: none.
func (s *Snapshot) Ahead() int {
	from := s.held()
	if from == nil {
		return 0
	}
	defer func() { _ = from.release() }()
	return from.Reads()
}

// Path is the absolute path without symbolic links of the folder that all lies in, or its URL.
func (s *Snapshot) Path() string { return s.path }

// Shipped reports whether the list lay beside the data, where WriteList's belongs.
func (s *Snapshot) Shipped() bool { return s.shipped }

// Listed is when the scan began that found what is listed.
func (s *Snapshot) Listed() time.Time { return s.listed }

// Cached reports whether the snapshot came from the cache, not from a scan.
func (s *Snapshot) Cached() bool { return s.cached }

// At tells sample i, 0 ≤ i < Len. Its key is written over buf, which grows if it must; with 4 KiB it never does.
func (s *Snapshot) At(i int, buf []byte) (Sample, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.manifest == nil {
		return Sample{}, ErrClosed
	}
	sample, err := s.line(i, buf)
	if errors.Is(err, manifest.ErrDamaged) {
		s.forget.Do(s.cache.remove) // the next Open scans
	}
	return sample, err
}

// line reads a line of the manifest, whose file may be cut meanwhile. mu is held.
func (s *Snapshot) line(i int, buf []byte) (_ Sample, err error) {
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	return s.manifest.At(i, buf)
}

// Close waits for calls of At, then gives the memory back, and the root's handle when no Read opens a file any more: storage that does not
// answer keeps nobody waiting. Later calls of At and Read return ErrClosed. Closing twice does nothing.
func (s *Snapshot) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.source != nil {
		err = s.source.release()
	}
	s.memory.free()
	s.manifest, s.source = nil, nil
	return err
}
