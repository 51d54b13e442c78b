package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/client/agent"
	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
	"github.com/feedwater-io/feedwater/local"
)

// What feedwater writes lies in no data set, whoever names the folder and by whatever links, and nothing is written there.
func TestOwnFoldersInTheData(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := pictures(t, 1)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(dir, "class0"), link); err != nil {
		t.Fatal(err)
	}
	before := len(filesBelow(t, dir))
	for _, c := range []struct{ flag, folder string }{
		{"index", dir}, {"index", filepath.Join(dir, "new", "index")}, {"index", filepath.Join(link, "new")}, {"cache-dir", filepath.Join(dir, "lists")},
	} {
		says := "the folder of --" + c.flag + ", or FEEDWATER_" + strings.ToUpper(strings.ReplaceAll(c.flag, "-", "_")) + ", lies in it"
		code, _, errs := call("index", dir, "--"+c.flag, c.folder)
		if code != exitError || !strings.Contains(errs, says) {
			t.Errorf("index --%s %s: code %d: %s", c.flag, c.folder, code, errs)
		}
		n := start(t, "--data", "photos="+dir, "--"+c.flag, c.folder)
		l := pipelines(t)
		if _, err := connect(t, l, agent.Plan{Text: []byte(crops), Nodes: []string{n.addr}}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("a node, --%s %s: %v", c.flag, c.folder, err)
		}
		n.stop()
	}
	if after := filesBelow(t, dir); len(after) != before {
		t.Errorf("written: %q", after)
	}
	if code, _, errs := call("index", dir, "--index", filepath.Join(t.TempDir(), "beside")); code != exitOK {
		t.Errorf("beside: code %d: %s", code, errs)
	}
}

// An agent has them apart too, as far as its environment names any.
func TestOwnFoldersOfAnAgent(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := pictures(t, 1)
	for value, refused := range map[string]bool{filepath.Join(dir, "index"): true, indexOff: false, t.TempDir(): false} {
		t.Setenv("FEEDWATER_INDEX", value)
		o, err := agentOptionsFromEnvironment()
		if err != nil {
			t.Fatal(err)
		}
		lists, given, closeLists, err := o.openLists(slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		l := newLocalPipelines(slog.New(slog.DiscardHandler), newCores(), local.Options{Lists: lists, Tables: given})
		_, err = connect(t, l, agent.Plan{Text: []byte(at(crops, dir)), Workers: 1})
		if got := err != nil && strings.Contains(err.Error(), "the folder of --index, or FEEDWATER_INDEX, lies in it"); got != refused {
			t.Errorf("FEEDWATER_INDEX=%s: %v", value, err)
		}
		l.Close()
		closeLists()
	}
}

// A limit that is more than a file system has is told with what there is, wherever it is given, and is no error.
func TestLimitsBeyondTheFileSystem(t *testing.T) {
	dir, new := pictures(t, 1), filepath.Join(t.TempDir(), "not", "there")
	there := fileSystemOf(new)
	if there.size <= 0 || there.free < 0 || there.free > there.size {
		t.Fatalf("%+v", there)
	}
	const asked = "1048576TiB"
	for flag, more := range map[string][]string{"index-limit": nil, "index-copies": nil, "cache-limit": nil, "table-limit": nil, "read-cache-limit": {"--read-cache", filepath.Join(t.TempDir(), "blocks")}} {
		says := "--" + flag + ", or FEEDWATER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) + ", is 1.049e+06TiB, and the file system of "
		args := append([]string{"--cache-dir", new, "--" + flag, asked}, more...)
		code, _, errs := call(append([]string{"index", dir}, args...)...)
		if code != exitOK || strings.Count(errs, "the file system of") != 1 || !strings.Contains(errs, says) || !strings.Contains(errs, "has "+there.size.String()) {
			t.Errorf("index --%s: code %d: %s", flag, code, errs)
		}
		n := start(t, append([]string{"--data", "photos=" + dir}, args...)...)
		n.stop()
		if !strings.Contains(n.log.String(), says) {
			t.Errorf("a node, --%s: %s", flag, n.log)
		}
	}
	for limit, warned := range map[bytesize.Size]bool{there.size: false, there.size + 1: true, 1: false} {
		if got := roomWarnings(ownLimit{"index-limit", limit, 1, new}); len(got) == 1 != warned {
			t.Errorf("%d: %q", limit, got)
		}
		if got := roomWarnings(ownLimit{"index-limit", limit, limit, new}); len(got) > 0 {
			t.Errorf("the standard %d: %q", limit, got)
		}
	}
}

// Storage that does not answer is waited for briefly.
func TestCallBriefly(t *testing.T) {
	answer := make(chan struct{})
	defer close(answer)
	began := time.Now()
	if _, ok := callBriefly(func() int { <-answer; return 1 }); ok || time.Since(began) < briefly {
		t.Errorf("an answer after %s", time.Since(began))
	}
	if v, ok := callBriefly(func() int { return 1 }); !ok || v != 1 {
		t.Errorf("%d, %t", v, ok)
	}
}

func filesBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A table that --cache-dir does not take is kept elsewhere, and the log says so.
func TestFolderThatTakesNoTables(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	place := listPlace{dir: folder, limit: standardLists, tables: standardTables}
	_, given, closeLists, err := place.openLists(slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer closeLists()
	const text, name = "text", "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"
	if err := given.Keep("", name, int64(len(text)), strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), folder) {
		t.Errorf("the log says %q", log.String())
	}
}
