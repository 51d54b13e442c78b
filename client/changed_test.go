package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Other content of the same size, behind a path of one node, while a job runs: names and sizes do not tell, yet the
// stream stays what it is, and the node is left out and named.
func TestContentChangesUnderAJob(t *testing.T) {
	c := newCluster(t)
	root, other := folder(t), folder(t)
	c.startReal("a", root)
	c.startReal("b", other)
	want := digest(t, newLoader(t, loader.Options{Options: c.realOptions(crops, "a"), Batch: 3}), 2)
	l := newLoader(t, loader.Options{Options: c.realOptions(crops, "a", "b"), Batch: 3, Window: 2})
	if _, err := l.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.await(l.Fleet(), 2)
	swap(t, filepath.Join(other, "class0"))
	if got := digest(t, l, 2); got != want {
		t.Errorf("the stream is %s, undisturbed %s", got, want)
	}
	c.until("the node is not left out", func() bool { return l.Fleet().Status()[1].State == client.LeftOut })
	log := c.log.String()
	if !strings.Contains(log, "listed anew: the names and sizes that the job began with, which do not tell whether the pixels are the same") {
		t.Errorf("the log does not say why:\n%s", log)
	}
	if strings.Contains(log, "a new Loader") {
		t.Errorf("the log advises to begin anew, and the other node goes on:\n%s", log)
	}
}

// masked is a plan with masks, of maskedFolder.
const masked = `{"source": {"root": "photos", "path": "pictures"}, "masks": {"root": "photos", "path": "masks"},
	"fields": ["image", "label", "mask"], "transforms": [{"op": "CenterCrop", "size": [50, 50]}]}`

// Two nodes of the same pictures and other masks: the one that is left out says what differs.
func TestMasksDiffer(t *testing.T) {
	c, other := newCluster(t), maskedFolder(t)
	rewrite(t, filepath.Join(other, "masks/class0/00.png"), longer)
	c.startReal("a", maskedFolder(t))
	c.startReal("b", other)
	l := newLoader(t, loader.Options{Options: c.realOptions(masked, "a", "b"), Batch: 45})
	if _, err := l.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.until("no node is left out", func() bool { return strings.Contains(c.log.String(), "left out") })
	if log := c.log.String(); !strings.Contains(log, "other masks than the job began with (fingerprint ") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

// A file that is written between the listing and the first batch, on the only node: the job ends, with an error that
// says what differs, and a new Loader takes the data as it is.
func TestChangedBeforeTheFirstBatch(t *testing.T) {
	for what, c := range map[string]struct {
		path   string
		change func([]byte) []byte
		says   string
	}{
		"a picture of another size": {"pictures/class0/00.jpg", longer, "listed anew: other data than the job began with (fingerprint "},
		"a mask of another size":    {"masks/class0/00.png", longer, "listed anew: other masks than the job began with (fingerprint "},
		"a mask of the same size":   {"masks/class0/00.png", bytes.Clone, "listed anew: the names and sizes that the job began with, which "},
	} {
		t.Run(what, func(t *testing.T) {
			nodes, root := newCluster(t), maskedFolder(t)
			nodes.startReal("a", root)
			loader := func() *loader.Loader {
				return newLoader(t, loader.Options{Options: nodes.realOptions(masked, "a"), Batch: 45})
			}
			l := loader()
			if _, err := l.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			rewrite(t, filepath.Join(root, c.path), c.change)
			err := firstError(t, l)
			var data *node.DataError
			if !errors.As(err, &data) {
				t.Fatalf("%v (%T), want a DataError", err, err)
			}
			for _, part := range []string{"class0/00.", "it changed after 2", c.says, "; a new Loader, or the run started again without"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v: does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "names and sizes") != strings.Contains(c.says, "names and sizes") {
				t.Errorf("%v: says what is not so", err)
			}
			digest(t, loader(), 1)
		})
	}
}

// A replay says of data that changed what a batch says, and not that there is no node.
func TestReplayOfDataThatChanged(t *testing.T) {
	nodes, root := newCluster(t), maskedFolder(t)
	nodes.startReal("a", root)
	l := newLoader(t, loader.Options{Options: nodes.realOptions(masked, "a"), Batch: 45})
	if _, err := l.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	rewrite(t, filepath.Join(root, "pictures/class0/00.jpg"), longer)
	want := firstError(t, l)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // a replay waits longer for nodes that may return
	defer cancel()
	_, err := l.Fleet().Replay(ctx, &pb.ReplayRequest{Name: rangeOf(0, 0, 1)})
	if want == nil || !errors.As(err, new(*node.DataError)) || !strings.Contains(err.Error(), "class0/00.") {
		t.Errorf("%v, and of a batch: %v", err, want)
	}
}

// firstError goes through a Loader's epoch to its error.
func firstError(t *testing.T, l *loader.Loader) error {
	t.Helper()
	for _, err := range l.Batches(t.Context()) {
		if err != nil {
			return err
		}
	}
	return nil
}

func longer(file []byte) []byte { return append(bytes.Clone(file), "more"...) }

// rewrite overwrites a file in place, by another time.
func rewrite(t *testing.T, file string, change func([]byte) []byte) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, change(content), 0o644)
	}
	if err == nil {
		err = os.Chtimes(file, time.Time{}, time.Unix(1e9, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// maskedFolder is folder's pictures, with a mask for each.
func maskedFolder(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Rename(folder(t), filepath.Join(root, "pictures")); err != nil {
		t.Fatal(err)
	}
	for i := range 45 {
		dir := filepath.Join(root, "masks", fmt.Sprint("class", i%3))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 60+i%13*10, 80+i%7*9))); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.png", i)), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
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

// Files that are wrong for a while under a job that has this node alone. As soon as they are what they were, as their
// sizes and times tell, the job goes on with the stream that it would have had. Files of other times may have other
// pixels, and end the job.
func TestFilesAreWrongForAWhile(t *testing.T) {
	pictures, masks := "pictures/class0/*.jpg", "masks/class0/*.png"
	for name, c := range map[string]struct {
		files         string
		spoil, repair func(t *testing.T, file kept)
		fails         string
	}{
		"written again in place": {pictures, cutShort, writeBack, ""},
		"others in their place":  {masks, func(t *testing.T, f kept) { f.replace(t, f.content[:50]) }, func(t *testing.T, f kept) { f.replace(t, f.content) }, ""},
		"other times":            {masks, cutShort, func(t *testing.T, f kept) { f.modified = time.Now(); writeBack(t, f) }, "listed anew: the names and sizes that the job began with"},
		"never right again":      {pictures, cutShort, func(*testing.T, kept) {}, "listed anew: other data than the job began with"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes, root := newCluster(t), maskedFolder(t)
			files := keepFiles(t, filepath.Join(root, c.files))
			nodes.startReal("a", root)
			want := digest(t, newLoader(t, loader.Options{Options: nodes.realOptions(masked, "a"), Batch: 3}), 1)
			options := nodes.realOptions(masked, "a")
			options.Timeout = 8 * time.Second
			l := newLoader(t, loader.Options{Options: options, Batch: 3, Window: 2})
			d := loader.NewDigest()
			for b, err := range l.Batches(t.Context()) {
				if c.fails != "" && err != nil {
					if !errors.As(err, new(*node.DataError)) || !strings.Contains(err.Error(), c.fails) {
						t.Errorf("%v, want a DataError that says %q", err, c.fails)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if d.Samples() == 0 {
					for _, f := range files {
						c.spoil(t, f)
					}
					go func() {
						nodes.until("the node is not left out", func() bool { return l.Fleet().Status()[0].State == client.LeftOut })
						for _, f := range files {
							c.repair(t, f)
						}
					}()
				}
				if err := d.Add(b); err != nil {
					t.Fatal(err)
				}
				b.Release()
			}
			if got := fmt.Sprintf("%d %s", d.Samples(), d.Sum()); got != want || c.fails != "" {
				t.Errorf("the stream is %s, undisturbed %s", got, want)
			}
		})
	}
}

// kept is what a file was.
type kept struct {
	path     string
	content  []byte
	modified time.Time
}

func keepFiles(t *testing.T, pattern string) (all []kept) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		modified := time.Unix(1e9, 0)
		if err := os.Chtimes(path, time.Time{}, modified); err != nil {
			t.Fatal(err)
		}
		all = append(all, kept{path, content, modified})
	}
	return all
}

// write writes a file in place, with its old time.
func (f kept) write(t *testing.T, path string, content []byte) {
	t.Helper()
	err := os.WriteFile(path, content, 0o644)
	if err == nil {
		err = os.Chtimes(path, time.Time{}, f.modified)
	}
	if err != nil {
		t.Error(err)
	}
}

// replace puts another file in its place.
func (f kept) replace(t *testing.T, content []byte) {
	t.Helper()
	f.write(t, f.path+".new", content)
	if err := os.Rename(f.path+".new", f.path); err != nil {
		t.Error(err)
	}
}

func cutShort(t *testing.T, f kept)  { f.write(t, f.path, f.content[:50]) }
func writeBack(t *testing.T, f kept) { f.write(t, f.path, f.content) }
