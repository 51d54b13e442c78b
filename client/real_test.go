package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
)

// crops is a plan with random crops and flips; whole one that leaves pictures as large as they are.
const (
	crops = `{"source": {"root": "photos"}, "seed": 5, "shuffle": true, "transforms": [
		{"op": "RandomResizedCrop", "size": [64, 64]}, {"op": "RandomHorizontalFlip"}]}`
	whole = `{"source": {"root": "photos"}, "shuffle": true, "transforms": []}`
)

// folder makes some pictures in three classes.
func folder(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	for i := range 45 {
		m := image.NewRGBA(image.Rect(0, 0, 60+i%13*10, 80+i%7*9))
		for y := range m.Rect.Dy() {
			for x := range m.Rect.Dx() {
				m.SetRGBA(x, y, color.RGBA{uint8(x * (i + 1)), uint8(y * 3), uint8(x ^ y), 255})
			}
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 80}); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(root, fmt.Sprint("class", i%3))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.jpg", i)), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// photos is the folder of real photographs, if there is one, else a generated one.
func photos(t testing.TB) string {
	for _, dir := range []string{os.Getenv("FEEDWATER_PHOTOS"), "../../shared/data/photos"} {
		if _, err := os.Stat(dir); dir != "" && err == nil {
			return dir
		}
	}
	return folder(t)
}

// startReal runs a node with a pipeline on a folder.
func (c *cluster) startReal(addr, root string) *servedNode {
	c.t.Helper()
	p, err := pipeline.Open(pipeline.Options{Workers: 2})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.serve(addr, server.Options{
		Engine: server.NewEngine(p, dataset.Options{CacheDir: filepath.Join(c.root, addr)}),
		Roots:  map[string]string{"photos": root},
	}, p.Close)
}

func (c *cluster) realOptions(plan string, addrs ...string) client.Options {
	o := c.options(addrs...)
	o.Plan = plan
	return o
}

func TestRealStreamIsTheSameForAnyNodes(t *testing.T) {
	root := photos(t)
	if loader.Checked { // the race detector learns nothing from more pictures, and takes minutes for them
		root = folder(t)
	}
	c := newCluster(t)
	for _, addr := range []string{"a", "b", "c"} {
		c.startReal(addr, root)
	}
	for _, text := range []string{crops, whole} {
		epochs := 2
		if text == whole {
			epochs = 1
		}
		want := digest(t, newLoader(t, loader.Options{Options: c.realOptions(text, "a"), Batch: 16}), epochs)
		got := digest(t, newLoader(t, loader.Options{Options: c.realOptions(text, "a", "b", "c"), Batch: 5}), epochs)
		if got != want {
			t.Errorf("three nodes: %s, one: %s", got, want)
		}
	}
}

// What Replay tells of a batch's samples is what is in the batch.
func TestRealReplay(t *testing.T) {
	c := newCluster(t)
	c.startReal("a", folder(t))
	l := newLoader(t, loader.Options{Options: c.realOptions(crops, "a"), Batch: 20})
	info, err := l.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Ops) != 2 || info.Ops[0].Name != "RandomResizedCrop" || info.Ops[0].Place != "node" || info.Ops[0].Tier != "A" {
		t.Errorf("ops %v", info.Ops)
	}
	c.await(l.Fleet(), 1)
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		name := rangeOf(b.Epoch, b.Position, uint32(b.Count))
		r, err := l.Fleet().Replay(t.Context(), &pb.ReplayRequest{Name: name, Pixels: true})
		if err != nil {
			t.Fatal(err)
		}
		indices, labels := b.Indices(), b.Labels()
		for i, s := range r.Samples {
			pix, h, w := b.Image(i)
			if !bytes.Equal(pix, s.Image) || h != int(s.Height) || w != int(s.Width) || uint64(indices[i]) != s.Index || labels[i] != s.Label {
				t.Fatalf("sample %d of position %d differs", i, b.Position)
			}
			if len(s.Draws) != 2 || !strings.HasPrefix(s.Draws[0].Parameters, "{") || s.EncodedBytes == 0 {
				t.Fatalf("draws %v", s.Draws)
			}
		}
		b.Release()
	}
	var plan *batch.PlanError
	if _, err := l.Fleet().Replay(t.Context(), &pb.ReplayRequest{Name: rangeOf(0, 0, 5000)}); !errors.As(err, &plan) {
		t.Errorf("a replay of 5000 samples: %v", err)
	}
}

// The same name always gives the same bytes, whatever lay in the node's memory before, gaps between fields included.
func TestRealBytesDoNotDependOnMemory(t *testing.T) {
	c := newCluster(t)
	c.startReal("a", folder(t))
	for _, text := range []string{crops, whole} {
		f := c.open(c.realOptions(text, "a"))
		want := ask(f, rangeOf(0, 3, 7), 1<<20)
		if want.Err != nil {
			t.Fatal(want.Err)
		}
		for i := range uint64(10) {
			if r := ask(f, rangeOf(1, i, uint32(5+i)), 1<<20); r.Err != nil {
				t.Fatal(r.Err)
			}
			if r := ask(f, rangeOf(0, 3, 7), 1<<20); r.Err != nil || !bytes.Equal(r.Data, want.Data) {
				t.Fatalf("other bytes, or %v", r.Err)
			}
		}
		f.Close()
	}
}

// A node whose folder differs in one file is left out, and the log names the file.
func TestRealDataDiffers(t *testing.T) {
	c := newCluster(t)
	a, b := folder(t), folder(t)
	if err := os.Truncate(filepath.Join(b, "class1", "13.jpg"), 700); err != nil {
		t.Fatal(err)
	}
	c.startReal("a", a)
	f := c.open(c.realOptions(crops, "a"))
	c.startReal("b", b)
	if err := f.SetNodes([]string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	c.until("it is not left out", func() bool { s := f.Status(); return len(s) == 2 && s[1].State == client.LeftOut })
	for _, w := range []string{`class \"class1\" has 15 samples there and 15 on a`, "first difference: class1/13.jpg has 700 bytes there"} {
		if !strings.Contains(c.log.String(), w) {
			t.Errorf("the log does not say %q:\n%s", w, c.log)
		}
	}
}

// A file that is written again while a job runs ends in an error that names it, unless a node has the job's data within
// Options.Timeout; a broken one in its sample error, at once.
func TestRealFilesChange(t *testing.T) {
	c := newCluster(t)
	root := folder(t)
	c.startReal("a", root)
	o := c.realOptions(`{"source": {"root": "photos"}, "transforms": [{"op": "Resize", "size": [32, 32]}]}`, "a")
	o.Timeout = time.Second
	f := c.open(o)
	if r := ask(f, rangeOf(0, 0, 5), 1<<20); r.Err != nil {
		t.Fatal(r.Err)
	}
	if err := os.WriteFile(filepath.Join(root, "class0", "00.jpg"), []byte("no picture"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := ask(f, rangeOf(0, 0, 5), 1<<20)
	var data *node.DataError
	cause, effect, _ := strings.Cut(fmt.Sprint(r.Err), "other data than the job began with")
	if !errors.As(r.Err, &data) || !strings.Contains(cause, "class0/00.jpg has 10 bytes") || effect == "" {
		t.Errorf("error %v", r.Err)
	}
	fresh := c.open(o)
	var sample *node.SampleError
	if r := ask(fresh, rangeOf(0, 0, 5), 1<<20); !errors.As(r.Err, &sample) || string(sample.Key) != "class0/00.jpg" || sample.Op != "decode" {
		t.Errorf("error %v", r.Err)
	}
}

func TestRealFoldersThatAreNone(t *testing.T) {
	c := newCluster(t)
	root := folder(t)
	if err := os.Mkdir(filepath.Join(root, "class0", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.startReal("a", root)
	for _, path := range []string{"none", "class0/empty", "class0/00.jpg", "../x"} {
		f, err := client.New(c.realOptions(`{"source": {"root": "photos", "path": "`+path+`"}}`, "a"))
		if err != nil {
			t.Fatal(err)
		}
		var data *node.DataError
		if _, err := f.Open(t.Context()); !errors.As(err, &data) || data.Path != path {
			t.Errorf("%s: %v", path, err)
		}
		f.Close()
	}
}
