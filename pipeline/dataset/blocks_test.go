package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/readcache"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

func openBlocks(t *testing.T, dir string, limit int64) *readcache.Cache {
	t.Helper()
	c, err := readcache.Open(dir, limit, func(err error) { t.Log(err) })
	treetest.Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// gets is how many objects, or ranges, the server was asked for.
func gets(s *buckettest.Server, name string) (n int) {
	for _, r := range s.Requests() {
		if strings.HasPrefix(r, "GET ") && strings.Contains(r, name) {
			n++
		}
	}
	return n
}

// TestReadCacheOfBucket: what was read is not asked for again, also by another process; what was replaced is, and never comes from before.
func TestReadCacheOfBucket(t *testing.T) {
	server := buckettest.OfFolder(t, remoteTree(t))
	dir, lists := t.TempDir(), t.TempDir()
	o := Options{CacheDir: lists, ReadCache: openBlocks(t, dir, 1<<20)}
	first := openParquet(t, server.Place("p"), o)
	want := tellAll(t, first)
	asked := gets(server, ".jpg")
	if asked == 0 {
		t.Fatal("nothing was read")
	}
	if got := tellAll(t, first); got != want || gets(server, ".jpg") != asked {
		t.Errorf("the second epoch asks the server %d times:\n%s", gets(server, ".jpg")-asked, got)
	}
	o.ReadCache = openBlocks(t, dir, 1<<20)
	if got := tellAll(t, openParquet(t, server.Place("p"), o)); got != want || gets(server, ".jpg") != asked {
		t.Errorf("another process asks the server %d times:\n%s", gets(server, ".jpg")-asked, got)
	}
	server.Put("p/a/1.jpg", []byte("PICTURE a/1.jpg"))
	got := tellAll(t, openParquet(t, server.Place("p"), o))
	if got != strings.Replace(want, "picture a/1.jpg", "PICTURE a/1.jpg", 1) {
		t.Errorf("with another version of a file:\n%s\nwant\n%s", got, want)
	}
}

// TestReadCacheOfDisk: a disk needs no other disk.
func TestReadCacheOfDisk(t *testing.T) {
	blocks := openBlocks(t, t.TempDir(), 1<<20)
	_ = tellAll(t, openParquet(t, remoteTree(t), Options{CacheDir: t.TempDir(), ReadCache: blocks}))
	if n := blocks.Counts(); n.Written != 0 || n.Misses != 0 {
		t.Errorf("%+v", n)
	}
}

// TestPackedParquet: pages that are compressed are unpacked once, and give the samples and the fingerprint of those that are not.
func TestPackedParquet(t *testing.T) {
	root := t.TempDir()
	copyParquet(t, "plain", filepath.Join(root, "x.parquet"))
	want := tellAll(t, openParquet(t, filepath.Join(root, "x.parquet"), Options{CacheDir: t.TempDir()}))
	for _, name := range []string{"snappy", "gzip", "zstd", "brotli", "lz4", "snappy_v2", "checksum"} {
		copyParquet(t, name, filepath.Join(root, "x.parquet"))
		server := buckettest.OfFolder(t, root)
		for _, place := range []string{filepath.Join(root, "x.parquet"), server.Place("p/x.parquet")} {
			blocks := t.TempDir()
			o := Options{CacheDir: t.TempDir(), ReadCache: openBlocks(t, blocks, 1<<20)}
			s := openParquet(t, place, o)
			asked := gets(server, "parquet")
			for range 2 {
				if got := tellAll(t, s); got != want {
					t.Fatalf("%s: %s\nwant\n%s", name, got, want)
				}
			}
			if n := o.ReadCache.Counts(); gets(server, "parquet") != asked || n.Misses != 0 {
				t.Errorf("%s: what the scan unpacked is read again: %+v", place, n)
			}
			treetest.Must(t, os.RemoveAll(blocks))
			s = openParquet(t, place, o)
			if got := tellAll(t, s); got != want || IsURL(place) && !s.Cached() {
				t.Errorf("%s: after its blocks were lost: %s", place, got)
			}
		}
	}
}

// TestUnpackedOnce: many that want pictures of one page have it unpacked once.
func TestUnpackedOnce(t *testing.T) {
	root := t.TempDir()
	copyParquet(t, "snappy_v2", filepath.Join(root, "x.parquet"))
	server := buckettest.OfFolder(t, root)
	blocks := t.TempDir()
	s := openParquet(t, server.Place("p/x.parquet"), Options{CacheDir: t.TempDir(), ReadCache: openBlocks(t, blocks, 1<<20)})
	treetest.Must(t, os.RemoveAll(blocks))
	asked := gets(server, "parquet")
	var all sync.WaitGroup
	for i := range s.Len() {
		all.Go(func() {
			if data, err := s.Read(t.Context(), i, nil); err != nil || !strings.HasPrefix(string(data), "picture ") {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
	all.Wait()
	if n := gets(server, "parquet") - asked; n != 1 {
		t.Errorf("the page was read %d times", n)
	}
}

// TestPackedWithoutRoom: without a read cache, or with one that they do not fit into, packed pictures are refused, also where a list of them is kept.
func TestPackedWithoutRoom(t *testing.T) {
	place := filepath.Join(t.TempDir(), "x.parquet")
	copyParquet(t, "snappy", place)
	o := Options{CacheDir: t.TempDir(), ReadCache: openBlocks(t, t.TempDir(), 1<<20)}
	_ = openParquet(t, place, o)
	for says, blocks := range map[string]*readcache.Cache{"--read-cache": nil, "--read-cache-limit": openBlocks(t, t.TempDir(), 100)} {
		for _, dir := range []string{o.CacheDir, t.TempDir()} {
			_, err := Open(t.Context(), place, Options{CacheDir: dir, ReadCache: blocks})
			if !errors.Is(err, ErrLayout) || !strings.Contains(fmt.Sprint(err), says) {
				t.Errorf("%v, want %q", err, says)
			}
		}
	}
}

// TestPackedFileThatChanged: blocks of before are not taken for it.
func TestPackedFileThatChanged(t *testing.T) {
	place := filepath.Join(t.TempDir(), "x.parquet")
	copyParquet(t, "snappy", place)
	o := Options{CacheDir: t.TempDir(), ReadCache: openBlocks(t, t.TempDir(), 1<<20)}
	s := openParquet(t, place, o)
	copyParquet(t, "gzip", place)
	_, err := s.Read(t.Context(), 0, nil)
	if err != nil { // a picture that is kept is that of the version which is listed
		t.Error(err)
	}
	if again := openParquet(t, place, o); again.Cached() {
		t.Error("a list of another version is taken")
	}
}
