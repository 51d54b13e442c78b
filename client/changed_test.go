package client_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/client"
)

// Other content of the same size, behind a path of one node, while a job runs: names and sizes do not tell, yet the stream stays what it
// is, and the node is left out and named.
func TestContentChangesUnderAJob(t *testing.T) {
	c := newCluster(t)
	root, other := folder(t), folder(t)
	c.startReal("a", root)
	c.startReal("b", other)
	want := digest(t, newLoader(t, client.LoaderOptions{Options: c.realOptions(crops, "a"), Batch: 3}), 2)
	l := newLoader(t, client.LoaderOptions{Options: c.realOptions(crops, "a", "b"), Batch: 3, Window: 2})
	if _, err := l.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.await(l.Fleet(), 2)
	swap(t, filepath.Join(other, "class0"))
	if got := digest(t, l, 2); got != want {
		t.Errorf("the stream is %s, undisturbed %s", got, want)
	}
	c.until("the node is not left out", func() bool { return l.Fleet().Status()[1].State == client.LeftOut })
	if !strings.Contains(c.log.String(), "which do not tell whether the pixels are the same") {
		t.Errorf("the log does not say why:\n%s", c.log)
	}
}

// swap gives every file of a folder the beginning of another one, and its own size.
func swap(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jpg"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	contents := make([][]byte, len(files))
	for i, file := range files {
		if contents[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for i, file := range files {
		text := make([]byte, len(contents[i]))
		copy(text, contents[(i+1)%len(files)])
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
