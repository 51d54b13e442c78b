// Package imageindex keeps a record about each file of a data set: something made of the file's bytes that is worth
// having again. Records are found by the sample's number, or by the digest of these bytes whichever data set the file is
// of, and used only for the very bytes that they were made of: each holds the digest and a checksum of itself. So whatever happens to its files or to the data, a
// record is right or is not found. The files are a cache: they may be deleted at any time, several processes share
// them, and where they cannot be written or there is no room nothing is kept. The package knows neither pictures nor
// data sets. A Cache runs at most one goroutine at a time, which writes and looks for files, so that nobody who asks or
// tells waits for that; Close waits for it.
package imageindex

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unsafe"
)

// Options of a Cache. The zero value works.
type Options struct {
	// Dir keeps the files. Default: feedwater/index in the user's cache directory.
	Dir string
	// MaxBytes is what all files in Dir may take, those of other Caches too. Where there is no room the files of data sets
	// that were not opened for longest make room, or in a folder of Caches by content those of which no record was used
	// for a week; such a Cache takes no record for which there is none. Default 4 GiB.
	MaxBytes int64
	// ReadOnly says that nothing is kept: what is in Dir is found, and Trouble is told nothing.
	ReadOnly bool
	// Trouble is told, once, why nothing more is kept: an error that wraps ErrFull, or one of the system. It must not
	// block. Default: nobody is told.
	Trouble func(error)
	// Hold is told by how many bytes the memory grows that the Cache holds for as long as it is open, and, by a
	// negative number, that it is given back: whoever limits the memory of the process adds that. It must not block.
	// Default: nobody is told.
	Hold func(bytes int64)

	pendingBytes int                          // records that are gathered for a file; tests write after fewer
	create       func(string) (writer, error) // makes a file of this pattern; tests fill the disk here
}

// ErrFull says that files which make no room take all that Options.MaxBytes allows.
var ErrFull = errors.New("the index has reached its limit of bytes")

const (
	defaultMaxBytes     = 4 << 30
	defaultPendingBytes = 8 << 20
	// flushAge is how long records are gathered at most: what is lost where a process is killed.
	flushAge = time.Minute
	// lookAge is how often a Cache that lacks records looks for the files of other processes.
	lookAge = 30 * time.Second
	// staleAge is how long ago files were used last that make room in a folder of Caches by content, and touchAge how
	// often they are said to be in use.
	staleAge = 7 * 24 * time.Hour
	touchAge = 10 * time.Minute
	// maxSegments is how many files a Cache has mapped at once: a process has 65,530 maps at most. Further ones are not
	// looked at.
	maxSegments = 32_768
)

// DefaultDir is the folder of a Cache whose Options name none.
func DefaultDir() (string, error) {
	user, err := os.UserCacheDir()
	return filepath.Join(user, "feedwater", "index"), err
}

func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		var err error
		if o.Dir, err = DefaultDir(); err != nil {
			return o, err
		}
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.Trouble == nil {
		o.Trouble = func(error) {}
	}
	if o.Hold == nil {
		o.Hold = func(int64) {}
	}
	if o.pendingBytes <= 0 {
		o.pendingBytes = defaultPendingBytes
	}
	if o.create == nil {
		o.create = createTemp
	}
	return o, nil
}

// Cache has records that are found by the samples of one data set, or by content. Its methods may be called by many
// goroutines at once.
type Cache struct {
	options   Options
	byContent bool
	key       [sha256.Size]byte // of the data set, or of all Caches by content with a name

	known  map[string]bool // names of files that are in use or were refused; of the one that tends, as the next
	latest int64           // what the latest of their names begins with

	mu       sync.RWMutex
	closed   bool
	leaving  bool  // the goroutine that is at work gives the memory back
	stopped  bool  // nothing is kept any more
	full     bool  // no more is taken; what was gathered is kept
	toldFull bool  // that it is full
	room     int64 // of a Cache by content: what may still be gathered
	lacking  int64 // what the record takes for which there was none
	tending  bool  // a goroutine is at work
	looked   time.Time
	table    table
	digests  *digests // the table of a Cache by content, else nil
	segments []segment
	pending  *pending  // nil: nothing is gathered
	taken    sync.Cond // pending was, to be written
	disk     int64     // bytes of files, see DiskBytes
	held     int64     // bytes that options.Hold was told
	lost     lost
	running  sync.WaitGroup
}

// lost are the records that were kept and that no file has.
type lost struct {
	records int
	bytes   int64
}

// HeldBytes is how many bytes of memory a Cache by so many samples comes to hold while it gathers nothing, if each has a record. It
// holds little more than 8 bytes for each record that there is.
func HeldBytes(samples int) int64 {
	blocks := int64(samples+blockSamples-1) / blockSamples
	return blocks*blockBytes + int64(samples)*int64(unsafe.Sizeof(place(0)))
}

// reportHeld tells that the store holds so many bytes more. mu is held.
func (s *Cache) reportHeld(bytes int64) {
	s.held += bytes
	s.options.Hold(bytes)
}

// Open finds the records of a data set, which has so many samples and is named by what decides them, its fingerprint.
// The caller must Close the Cache. It fails only where there is no place for files.
func Open(fingerprint string, samples int, options Options) (*Cache, error) {
	return open(fmt.Sprintf("%d samples of %s", samples, fingerprint), newPlaces(samples), options)
}

// OpenByContent finds the records of a name, which are found by the digests of files: whoever has a file with these bytes
// shares them. It holds up to 38 bytes of memory for each record that there is. Who can make files of equal digests can have
// a record of one found for the other: where those who give files are not to be trusted, the caller must tell them apart
// by what is in the record. Else it is as Open.
func OpenByContent(name string, options Options) (*Cache, error) {
	return open("by content, "+name, newDigests(), options)
}

func open(name string, empty table, options Options) (*Cache, error) {
	o, err := options.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	s := &Cache{options: o, known: map[string]bool{}, table: empty, looked: time.Now(), key: sha256.Sum256([]byte(name))}
	s.digests, s.byContent = empty.(*digests)
	s.taken.L = &s.mu
	s.reportHeld(s.table.held())
	s.lookForFiles()
	s.stopped = o.ReadOnly
	s.measureRoom()
	return s, nil
}

// filePrefix begins the names of the Cache's files. Those of other formats have another one, so that versions share
// a folder.
func (s *Cache) filePrefix() string { return hex.EncodeToString(s.key[:16]) + "." + format + "-" }

// Close writes what was gathered and gives all memory back. Later calls find nothing and keep nothing. Closing twice
// does nothing.
func (s *Cache) Close() {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
	if again {
		return
	}
	s.touchUsed()
	s.lookForFiles()
	s.flushPending()
	s.tellFull()
	s.lookForFiles()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeSegments()
}

// Abandon is Close for a disk that does not answer: it writes nothing and waits for nobody. What was gathered is lost.
// Memory that a call on the disk needs is given back with that call. Behind Close, or while it is under way, it does
// nothing.
func (s *Cache) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed, s.stopped = true, true
	s.taken.Broadcast()
	if s.leaving = s.tending; !s.leaving {
		s.freeSegments()
	}
}

func (s *Cache) isClosed() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.closed
}

func (s *Cache) countSegments() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.segments)
}

// freeSegments gives all memory back. mu is held.
func (s *Cache) freeSegments() {
	for i := range s.segments {
		s.segments[i].freeMemory()
	}
	s.segments, s.table, s.digests, s.pending = nil, newPlaces(0), nil, nil
	s.reportHeld(-s.held)
}

// Lost is how many records were kept that no file has, and the bytes of their data: those that are gathered, or could
// not be written.
func (s *Cache) Lost() (records int, bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lost.records, s.lost.bytes
}
