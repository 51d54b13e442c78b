package snapshots

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// scanner takes snapshots of folders that are not there. Each snapshot has the fingerprint that is set when its scan
// begins.
type scanner struct {
	fingerprint atomic.Value
	scans, open atomic.Int64
	took        time.Duration
	kept        atomic.Value // fingerprint of the list that scans take which need not list anew; not set: none
	err         error
}

func (e *scanner) Scan(ctx context.Context, _ Folder, anew bool, progress func(int)) (Data, error) {
	if kept, ok := e.kept.Load().(string); ok && !anew {
		e.open.Add(1)
		return &scanned{engine: e, fingerprint: kept}, nil
	}
	began := time.Now()
	progress(4096)
	e.scans.Add(1)
	f, _ := e.fingerprint.Load().(string)
	select {
	case <-time.After(e.took):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if e.err != nil {
		return nil, e.err
	}
	e.open.Add(1)
	return &scanned{e, f, began}, nil
}

func (*scanner) Same(a, b Data) bool { return a.Fingerprint() == b.Fingerprint() }

type scanned struct {
	engine      *scanner
	fingerprint string
	listed      time.Time
}

func (d *scanned) Fingerprint() string        { return d.fingerprint }
func (d *scanned) Versions() (string, string) { return "", "" }
func (d *scanned) Listing() string            { return "" }
func (d *scanned) Listed() time.Time          { return d.listed }
func (*scanned) Len() int                     { return 1 }
func (*scanned) Classes() []dataset.Class     { return nil }
func (d *scanned) Close() error {
	d.engine.open.Add(-1)
	return nil
}

func TestOneScanForAllWhoAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &scanner{took: 10 * time.Second}
		l := newSnapshotCache(e, time.Minute)
		for i := range 10 {
			go func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i == 0 { // the one that began it goes away
					time.AfterFunc(time.Second, cancel)
				}
				s, err := l.openFolder(ctx, Folder{Path: "a"}, "a", "", time.Time{})
				if i == 0 {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("error %v after its own cancel", err)
					}
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				s.Release()
			}()
		}
		time.Sleep(11 * time.Second)
		if n := e.scans.Load(); n != 1 {
			t.Errorf("%d scans for ten that asked at once", n)
		}
		if l.countFolders() != 1 || e.open.Load() != 1 {
			t.Error("the snapshot is gone")
		}
		time.Sleep(time.Minute)
		if e.open.Load() != 0 || len(l.folders) != 0 {
			t.Error("an unused snapshot is kept for ever")
		}
		l.closeCache()
	})
}

func TestScanEndsWhenNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &scanner{took: time.Hour}
		l := newSnapshotCache(e, time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if _, err := l.openFolder(ctx, Folder{Path: "a"}, "a", "", time.Time{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		l.running.Wait()
		if time.Since(begun) != time.Second || len(l.folders) != 0 {
			t.Errorf("the scan went on for %s", time.Since(begun))
		}
		e.took = 0
		s, err := l.openFolder(t.Context(), Folder{Path: "a"}, "a", "", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		s.Release()
		l.closeCache()
		if e.open.Load() != 0 {
			t.Error("a snapshot is open after close")
		}
	})
}

// Whoever comes after a change has the folder as it is now; many who come so share a scan, and scans have rests between
// them.
func TestScansRest(t *testing.T) {
	for took, period := range map[time.Duration]time.Duration{
		20 * time.Millisecond: 80 * time.Millisecond,
		10 * time.Second:      11 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &scanner{took: took}
			l := newSnapshotCache(e, time.Minute)
			for round := range 5 {
				now := fmt.Sprint(round)
				e.fingerprint.Store(now)
				var wg sync.WaitGroup
				for range 10 {
					wg.Go(func() {
						s, err := l.openFolder(t.Context(), Folder{Path: "a"}, "a", "", time.Time{})
						if err != nil {
							t.Error(err)
							return
						}
						if s.Fingerprint() != now {
							t.Errorf("round %d has the folder of round %s", round, s.Fingerprint())
						}
						s.Release()
					})
				}
				begun := time.Now()
				wg.Wait()
				if round > 0 && time.Since(begun) != period || e.scans.Load() != int64(round+1) {
					t.Errorf("round %d took %s and %d scans", round, time.Since(begun), e.scans.Load())
				}
			}
			l.closeCache()
		})
	}
}

func TestSnapshotIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &scanner{took: 20 * time.Millisecond}
		l := newSnapshotCache(e, time.Minute)
		open := func(pinned string) *Snapshot {
			t.Helper()
			s, err := l.openFolder(t.Context(), Folder{Path: "a"}, "a", pinned, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		e.fingerprint.Store("one")
		first := open("")
		e.fingerprint.Store("two")
		if s := open("one"); s != first {
			t.Error("a pinned snapshot that is open was scanned again")
		} else {
			s.Release()
		}
		second := open("")
		if second == first || second.Fingerprint() != "two" {
			t.Error("the folder was not looked at again")
		}
		if e.open.Load() != 2 {
			t.Error("a snapshot in use was closed")
		}
		first.Release()
		if e.open.Load() != 1 {
			t.Error("the old snapshot is kept after its last use")
		}
		if l.findFingerprint("one", anywhere) != nil {
			t.Error("the old snapshot is still offered")
		}
		if s := l.findFingerprint("two", anywhere); s != second {
			t.Error("the new snapshot is not offered")
		} else {
			s.Release()
		}
		second.Release()
		time.Sleep(30 * time.Second)
		open("two").Release() // begins its rest anew
		time.Sleep(45 * time.Second)
		if e.open.Load() != 1 {
			t.Error("closed too early")
		}
		time.Sleep(time.Minute)
		if e.open.Load() != 0 {
			t.Error("kept too long")
		}
		l.closeCache()
	})
}

// A folder that is looked at again and is the same keeps its snapshot, for all who ask and for as long as somebody
// does.
func TestUnchangedSnapshotStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &scanner{}
		e.fingerprint.Store("one")
		l := newSnapshotCache(e, time.Minute)
		var first *Snapshot
		for i := range 5 {
			s, err := l.openFolder(t.Context(), Folder{Path: "a"}, "a", "", time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = s
			}
			if s != first || e.scans.Load() != int64(i+1) || e.open.Load() != 1 {
				t.Errorf("open %d: another snapshot is %v, %d scans, %d open", i, s != first, e.scans.Load(), e.open.Load())
			}
			s.Release()
			time.Sleep(45 * time.Second)
		}
		time.Sleep(time.Minute)
		if e.open.Load() != 0 || len(l.folders) != 0 {
			t.Error("kept too long")
		}
		l.closeCache()
	})
}

// A snapshot whose folder is known to have changed is not given to anybody else.
func TestSpoiledSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &scanner{}
		e.fingerprint.Store("one")
		l := newSnapshotCache(e, time.Minute)
		first, err := l.openFolder(t.Context(), Folder{Path: "a"}, "a", "", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		first.Invalidate()
		second, err := l.openFolder(t.Context(), Folder{Path: "a"}, "a", "one", time.Time{})
		if err != nil || second == first || e.open.Load() != 2 {
			t.Errorf("%v, %d open", err, e.open.Load())
		}
		first.Invalidate() // it has been replaced already
		first.Release()
		if l.countFolders() != 1 || e.open.Load() != 1 {
			t.Error("the new one is gone")
		}
		second.Release()
		l.closeCache()
		if e.open.Load() != 0 {
			t.Error("one is open at the end")
		}
	})
}

func TestFailedScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &scanner{err: errors.New("no")}
		l := newSnapshotCache(e, time.Minute)
		if _, err := l.openFolder(t.Context(), Folder{Path: "a"}, "a", "", time.Time{}); !errors.Is(err, e.err) {
			t.Errorf("error %v", err)
		}
		if len(l.folders) != 0 {
			t.Error("a folder that does not exist is remembered")
		}
		l.closeCache()
		if _, err := l.openFolder(t.Context(), Folder{Path: "a"}, "a", "", time.Time{}); !errors.Is(err, ErrClosed) {
			t.Errorf("error %v after close", err)
		}
	})
}

// Closed while scans run and snapshots are in use.
func TestLibraryCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &scanner{}
		l := newSnapshotCache(e, time.Minute)
		used, err := l.openFolder(t.Context(), Folder{Path: "a"}, "a", "", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		e.took = time.Hour
		go func() {
			if _, err := l.openFolder(t.Context(), Folder{Path: "b"}, "b", "", time.Time{}); err == nil {
				t.Error("a scan outlived close")
			}
		}()
		synctest.Wait()
		l.closeCache()
		used.Release()
		synctest.Wait()
		if e.open.Load() != 0 {
			t.Error("a snapshot is open at the end")
		}
	})
}

func anywhere(Folder) bool { return true }

// Whoever needs what was listed since some time shares one scan that takes no kept list; while that is new, or is not much older than it took, it serves
// all. Others take the kept one.
func TestListIsMadeAnewOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &scanner{took: 10 * time.Second}
		e.fingerprint.Store("new")
		e.kept.Store("old")
		l := newSnapshotCache(e, time.Minute)
		defer l.closeCache()
		open := func(since time.Time) string {
			s, err := l.openFolder(t.Context(), Folder{Path: "a"}, "a", "", since)
			if err != nil {
				t.Error(err)
				return ""
			}
			defer s.Release()
			return s.Fingerprint()
		}
		if got := open(time.Time{}); got != "old" || e.scans.Load() != 0 {
			t.Fatalf("%s after %d scans", got, e.scans.Load())
		}
		var asking sync.WaitGroup
		for i := range 10 {
			asking.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				if got := open(time.Now()); got != "new" {
					t.Errorf("%s since now", got)
				}
			})
		}
		asking.Wait()
		if n := e.scans.Load(); n != 1 {
			t.Errorf("%d scans for ten that asked while it ran", n)
		}
		time.Sleep(20 * time.Second) // of the 30 s in which the next one may not begin
		if open(time.Now()); e.scans.Load() != 1 {
			t.Error("a scan took more than a quarter of the time")
		}
		time.Sleep(20 * time.Second)
		e.fingerprint.Store("newer")
		if got := open(time.Now()); got != "newer" || e.scans.Load() != 2 {
			t.Errorf("%s after %d scans", got, e.scans.Load())
		}
	})
}
