package readcache

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openCache(t testing.TB, dir string, limit int64) *Cache {
	t.Helper()
	c, err := Open(dir, limit, func(err error) { t.Log(err) })
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func key(i int) Key { return KeyOf("s3://b", "x.tar", "v1", "", int64(i), 1000) }

func data(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 1000) }

// has reports whether a block is there, with its bytes.
func has(t testing.TB, c *Cache, i int) bool {
	t.Helper()
	p := make([]byte, 1000)
	if !c.Read(key(i), p) {
		return false
	}
	if !bytes.Equal(p, data(i)) {
		t.Errorf("block %d has other bytes", i)
	}
	return true
}

// files are those of all blocks.
func files(c *Cache) (all []string, size int64) {
	c.each(func(path string, fi fs.FileInfo) {
		all = append(all, path)
		size += fi.Size()
	})
	return all, size
}

func TestBlocks(t *testing.T) {
	dir := t.TempDir()
	c := openCache(t, dir, 1<<20)
	if has(t, c, 1) {
		t.Error("an empty folder has a block")
	}
	c.Write(key(1), data(1))
	c.Write(key(1), data(1))
	if !has(t, c, 1) || has(t, c, 2) {
		t.Error("other blocks than were written")
	}
	if !has(t, openCache(t, dir, 1<<20), 1) {
		t.Error("another process does not find it")
	}
	_, size := files(c)
	if got := c.Counts(); got.Hits != 1 || got.Misses != 2 || got.Used != size || got.Written != 1000 || got.Read != 1000 {
		t.Errorf("%+v, %d bytes", got, size)
	}
	var none *Cache
	none.Write(key(1), data(1))
	if none.Read(key(1), data(1)) || none.Limit() != 0 || none.Counts() != (Counts{}) || none.Close() != nil {
		t.Error("no cache has something")
	}
}

// TestKeys: whatever names a block makes it another one.
func TestKeys(t *testing.T) {
	seen := map[Key]string{}
	for _, at := range []struct {
		place, object, version, part string
		offset, size                 int64
	}{
		{"p", "o", "v", "", 1, 2}, {"q", "o", "v", "", 1, 2}, {"p", "p", "v", "", 1, 2}, {"p", "o", "w", "", 1, 2}, {"p", "o", "v", "x", 1, 2},
		{"p", "o", "v", "", 2, 2}, {"p", "o", "v", "", 1, 3}, {"po", "", "v", "", 1, 2}, {"p", "ov", "", "", 1, 2},
	} {
		k := KeyOf(at.place, at.object, at.version, at.part, at.offset, at.size)
		if seen[k] != "" {
			t.Errorf("%+v and %s are one block", at, seen[k])
		}
		seen[k] = fmt.Sprint(at)
	}
}

// TestDamage: whatever byte of a block differs, or is missing, or is too many, it is not there, is removed, and can be written again.
func TestDamage(t *testing.T) {
	c := openCache(t, t.TempDir(), 1<<20)
	spoils := map[string]func(b []byte) []byte{
		"longer": func(b []byte) []byte { return append(b, 0) }, "empty": func([]byte) []byte { return nil },
		"another block": func(b []byte) []byte { k := key(9); return append(append(b[:12:12], k[:]...), b[headBytes:]...) },
	}
	for at := 0; at < headBytes+960; at++ {
		if at > headBytes {
			at += 37
		}
		spoils[fmt.Sprintf("byte %d", at)] = func(b []byte) []byte { b[at] ^= 4; return b }
		spoils[fmt.Sprintf("cut at %d", at)] = func(b []byte) []byte { return b[:at] }
	}
	k := key(1)
	path := c.path(&k)
	for name, spoil := range spoils {
		c.Write(key(1), data(1))
		whole, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, spoil(whole), 0o600))
		if c.Read(key(1), make([]byte, 1000)) {
			t.Errorf("%s: it is taken for the block", name)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: it stays", name)
		}
	}
	if got := c.Counts(); got.Damaged != int64(len(spoils)) {
		t.Errorf("%+v", got)
	}
}

// TestRoom: what was not used for longest goes, what is read stays, and the folder never has more than its limit.
func TestRoom(t *testing.T) {
	const limit = 100_000
	dir := t.TempDir()
	c := openCache(t, dir, limit)
	clock := time.Now().Add(-24 * time.Hour)
	c.now = func() time.Time { return clock }
	own := filepath.Join(dir, "ab", "of somebody else")
	must(t, os.MkdirAll(filepath.Dir(own), 0o700))
	must(t, os.WriteFile(own, data(1), 0o600))
	for i := range 500 {
		clock = clock.Add(2 * time.Minute)
		c.Write(key(i), data(i))
		k := key(i)
		_ = os.Chtimes(c.path(&k), clock, clock) // as if it had been written then; a block that was refused is not there
		if i > 0 && !has(t, c, 0) {
			t.Fatalf("block 0 is gone after %d, and is read all the time", i)
		}
		c.running.Wait()
		if _, size := files(c); size > limit {
			t.Fatalf("%d bytes after %d blocks", size, i)
		}
	}
	if !has(t, c, 499) || !has(t, c, 450) || has(t, c, 300) {
		t.Error("other blocks than the last ones are there")
	}
	if _, err := os.Stat(own); err != nil {
		t.Error("a file of somebody else is gone")
	}
	if got := c.Counts(); got.Removed == 0 {
		t.Errorf("%+v", got)
	}
}

// TestOneMinute: of blocks of one minute the oldest go as well.
func TestOneMinute(t *testing.T) {
	c := openCache(t, t.TempDir(), 50_000)
	minute := time.Now().Add(-time.Hour).Truncate(time.Minute)
	for i := range 40 {
		c.Write(key(i), data(i))
		at := minute.Add(time.Duration(i) * time.Second)
		k := key(i)
		must(t, os.Chtimes(c.path(&k), at, at))
	}
	c.limit = 24_000
	if left := c.removeOldest(); left > 21_000 || left < 19_000 {
		t.Errorf("%d bytes are left", left)
	}
	for i := range 40 {
		if got, want := has(t, c, i), i >= 20; got != want {
			t.Errorf("block %d: there: %v", i, got)
		}
	}
}

// TestKilledWriters: of processes that are killed while they write, all blocks that are there are whole, and what they left behind goes.
func TestKilledWriters(t *testing.T) {
	dir := os.Getenv("READCACHE_TEST_DIR")
	if dir != "" {
		c, err := Open(dir, 1<<30, nil)
		must(t, err)
		fmt.Println("writes")
		for i := 0; ; i++ {
			c.Write(key(i%5000), data(i%5000))
		}
	}
	dir = t.TempDir()
	for range 3 {
		writer := exec.Command(os.Args[0], "-test.run=TestKilledWriters$")
		writer.Env = append(os.Environ(), "READCACHE_TEST_DIR="+dir)
		out, err := writer.StdoutPipe()
		must(t, err)
		must(t, writer.Start())
		_, err = out.Read(make([]byte, 1))
		must(t, err)
		c := openCache(t, dir, 1<<30)
		for blocks := 0; blocks < 20; {
			all, _ := files(c)
			blocks = len(all)
		}
		must(t, writer.Process.Kill())
		_ = writer.Wait() // it was killed
	}
	c := openCache(t, dir, 1<<30)
	all, size := files(c)
	found := 0
	for i := range 5000 {
		if has(t, c, i) {
			found++
		}
	}
	if got := c.Counts(); found != len(all) || got.Damaged != 0 || got.Used < size {
		t.Errorf("%d of %d blocks are whole: %+v, %d bytes", found, len(all), got, size)
	}
	left := filepath.Join(dir, "00", ".1"+unfinished)
	must(t, os.MkdirAll(filepath.Dir(left), 0o700))
	must(t, os.WriteFile(left, nil, 0o600))
	c.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	files(c)
	if _, err := os.Stat(left); err == nil {
		t.Error("what was left behind stays")
	}
}

// TestDiskThatFails: it is told, and nobody waits for it.
func TestDiskThatFails(t *testing.T) {
	dir := t.TempDir()
	var told []string
	c, err := Open(dir, 1<<20, func(err error) { told = append(told, err.Error()) })
	must(t, err)
	k := key(1)
	must(t, os.WriteFile(filepath.Dir(c.path(&k)), nil, 0o600)) // where a folder should be
	for range 3 {
		c.Write(key(1), data(1))
	}
	if c.Read(key(1), make([]byte, 1000)) || len(told) != 1 || !strings.Contains(told[0], "not a directory") {
		t.Error(told)
	}
	if got := c.Counts(); got.Refused != 1 || got.Used != 0 {
		t.Errorf("%+v", got)
	}
	must(t, c.Close())
	if _, err := Open(filepath.Dir(c.path(&k)), 1, nil); err == nil {
		t.Error("a file is taken for a folder")
	}
}
