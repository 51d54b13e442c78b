package dataset

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/nametest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// nasty is a tree in which every rule of torchvision's ImageFolder shows.
var nasty = []string{
	"README.md", "loose.jpg", "dangling -> nowhere", "dangling.jpg -> nowhere",
	// Sorted by the whole path, not folder by folder: ' ', '-' and '.' come before '/'.
	"order/a/1.jpg", "order/a b/1.jpg", "order/a-b/1.jpg", "order/a.b/1.jpg", "order/a0/1.jpg", "order/a/c/1.jpg", "order/1.jpg", "order/z.jpg",
	"order/10.jpg", "order/2.jpg", "order/B.jpg", "order/_.jpg",
	// By code point, a byte that is no UTF-8 as U+DC00 plus itself.
	"text/é.jpg", "text/日本.png", "text/\ue000.jpg", "text/\xff.jpg", "text/\xff\xfe/\xe2\x82.jpg", "text/😀.webp", "text/two\nlines.jpg", "text/a b.jpg", "text/ .jpg",
	"endings/a.JPG", "endings/b.Jpeg", "endings/c.PNG", "endings/d.ppm", "endings/e.bmp", "endings/f.pgm", "endings/g.tif", "endings/h.TIFF", "endings/i.webp",
	"endings/j.gif", "endings/k.jpgg", "endings/l.jpg.txt", "endings/jpg", "endings/.jpg", "endings/.hidden.jpg", "endings/m.t\u0130f", "endings/no", "endings/n.jpg~",
	"folders.jpg/x.jpg/1.jpg", "folders.jpg/empty/", "folders.jpg/empty.jpg/", "folders.jpg/.hidden/1.jpg", "folders.jpg/1/2/3/4/5/6.jpg",
	"links/file.jpg -> ../order/1.jpg", "links/folder -> ../order/a", "links/twice -> ../order/a", "links/dangling -> nowhere", "links/self -> self",
	"links/through -> ../endings/no/x", "class link -> order/a b", ".hidden/1.jpg", "Z/1.jpg", "z/1.jpg", "\xff/1.jpg", "\ue000/1.jpg",
}

// nastyKeys is what torchvision 0.29.2 (Python 3.11.7, UTF-8) lists for nasty: it pins the rules where no torchvision is at
// hand. TestTorchvision compares with the real one.
var nastyKeys = []string{
	".hidden/1.jpg", "Z/1.jpg", "class link/1.jpg", "endings/.hidden.jpg", "endings/.jpg", "endings/a.JPG",
	"endings/b.Jpeg", "endings/c.PNG", "endings/d.ppm", "endings/e.bmp", "endings/f.pgm", "endings/g.tif",
	"endings/h.TIFF", "endings/i.webp", "folders.jpg/.hidden/1.jpg", "folders.jpg/1/2/3/4/5/6.jpg",
	"folders.jpg/x.jpg/1.jpg", "links/file.jpg", "links/folder/1.jpg", "links/folder/c/1.jpg",
	"links/twice/1.jpg", "links/twice/c/1.jpg", "order/1.jpg", "order/10.jpg", "order/2.jpg", "order/B.jpg",
	"order/_.jpg", "order/z.jpg", "order/a/1.jpg", "order/a b/1.jpg", "order/a-b/1.jpg", "order/a.b/1.jpg",
	"order/a/c/1.jpg", "order/a0/1.jpg", "text/ .jpg", "text/a b.jpg", "text/two\nlines.jpg", "text/é.jpg",
	"text/日本.png", "text/\xff.jpg", "text/\ue000.jpg", "text/😀.webp", "text/\xff\xfe/\xe2\x82.jpg", "z/1.jpg",
	"\xff/1.jpg", "\ue000/1.jpg",
}

func TestNastyTree(t *testing.T) {
	s := open(t, treetest.Grow(t, t.TempDir(), nasty...), options(t))
	if got := keys(t, s); !slices.Equal(got, nastyKeys) {
		t.Error(differing(got, nastyKeys))
	}
}

// differing shows the first difference of two lists.
func differing[T comparable](got, want []T) string {
	for i := range max(len(got), len(want)) {
		g, w := got[min(i, len(got)):], want[min(i, len(want)):]
		if len(g) == 0 || len(w) == 0 || g[0] != w[0] {
			return fmt.Sprintf("%d entries, want %d; number %d is %q, want %q",
				len(got), len(want), i, fmt.Sprint(g[:min(1, len(g))]), fmt.Sprint(w[:min(1, len(w))]))
		}
	}
	return ""
}

// TestTorchvision compares with the real ImageFolder where FEEDWATER_PYTHON names a Python that has torchvision; elsewhere
// TestNastyTree and TestRandomTrees stand for it.
func TestTorchvision(t *testing.T) {
	interpreter := os.Getenv("FEEDWATER_PYTHON")
	if interpreter == "" {
		return
	}
	roots := []string{treetest.Grow(t, t.TempDir(), nasty...)}
	r := rand.New(rand.NewPCG(3, 1))
	for range 40 {
		roots = append(roots, randomTree(t, r))
	}
	if dir := photos(t); dir != "" {
		roots = append(roots, dir)
	}
	want := torchvision(t, interpreter, roots)
	for i, root := range roots {
		var got []string
		for _, l := range lines(t, open(t, root, options(t))) {
			got = append(got, fmt.Sprint(l.label, " ", hex.EncodeToString([]byte(l.key))))
		}
		if !slices.Equal(got, want[i]) {
			t.Errorf("tree %d, %s: %s", i, root, differing(got, want[i]))
		}
	}
}

// torchvision asks the real one for "label key-in-hex" of every sample of every root.
func torchvision(t *testing.T, interpreter string, roots []string) [][]string {
	command := exec.CommandContext(t.Context(), interpreter, append([]string{"testdata/imagefolder.py"}, roots...)...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	treetest.Must(t, err)
	var all [][]string
	for folder := range strings.SplitSeq(strings.TrimSuffix(string(out), "end\n"), "end\n") {
		all = append(all, strings.Split(strings.TrimSpace(folder), "\n"))
	}
	if len(all) != len(roots) {
		t.Fatalf("%d folders listed, want %d", len(all), len(roots))
	}
	return all
}

// randomTree makes classes with a picture each, and below them whatever comes.
func randomTree(t testing.TB, r *rand.Rand) string {
	root := t.TempDir()
	var folders []string
	for range 1 + r.IntN(6) {
		name := nametest.Random(r)
		if name == "." || name == ".." {
			continue
		}
		folders = append(folders, name)
	}
	folders = append(folders, "class")
	for _, f := range folders {
		treetest.Grow(t, root, f+"/"+strconv.Itoa(r.IntN(100))+".jpg")
	}
	for range r.IntN(150) {
		name := nametest.Random(r)
		if name == "." || name == ".." {
			continue
		}
		at := folders[r.IntN(len(folders))] + "/" + name
		_, err := os.Lstat(root + "/" + at)
		switch choice := r.IntN(10); {
		case err == nil:
		case choice == 0:
			treetest.Grow(t, root, at+"/")
			folders = append(folders, at)
		case choice == 1:
			treetest.Grow(t, root, at+".png/")
		case choice == 2:
			treetest.Grow(t, root, at)
		case choice == 3:
			link := filepath.Join(root, "class")
			files, err := filepath.Glob(link + "/*.jpg")
			treetest.Must(t, err)
			treetest.Must(t, os.Symlink(files[0], root+"/"+at+".tif"))
		case choice == 4:
			treetest.Grow(t, root, at+".bmp")
			treetest.Must(t, os.Truncate(root+"/"+at+".bmp", 0))
		default:
			treetest.Grow(t, root, at+".jpg")
		}
	}
	return root
}

// imageFolder is ImageFolder's rule in its plainest form.
func imageFolder(t testing.TB, root string) []line {
	sorted := func(names []string) []string {
		slices.SortFunc(names, func(a, b string) int { return slices.Compare(nametest.DecodeAsPython(a), nametest.DecodeAsPython(b)) })
		return names
	}
	isFolder := func(path string) bool { fi, err := os.Stat(path); return err == nil && fi.IsDir() }
	list := func(path string) (folders, files []string) {
		entries, err := os.ReadDir(path)
		treetest.Must(t, err)
		for _, e := range entries {
			if isFolder(path + "/" + e.Name()) {
				folders = append(folders, e.Name())
			} else {
				files = append(files, e.Name())
			}
		}
		return sorted(folders), sorted(files)
	}
	var walk func(path string) []string
	walk = func(path string) []string {
		all := []string{path}
		folders, _ := list(root + "/" + path)
		for _, f := range folders {
			all = append(all, walk(path+"/"+f)...)
		}
		return all
	}
	var samples []line
	classes, _ := list(root)
	for label, class := range classes {
		for _, folder := range sorted(walk(class)) {
			_, files := list(root + "/" + folder)
			for _, f := range files {
				if ending := strings.ToLower(filepath.Ext(f)); slices.Contains([]string{".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"}, ending) {
					fi, err := os.Stat(root + "/" + folder + "/" + f)
					treetest.Must(t, err)
					samples = append(samples, line{folder + "/" + f, label, fi.Size(), fi.ModTime().UnixNano()})
				}
			}
		}
	}
	return samples
}

func TestRandomTrees(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for i := range 40 {
		root := randomTree(t, r)
		want := imageFolder(t, root)
		o := options(t)
		o.Readers = 1 + i%5
		for range 2 { // scanned, then from the cache
			s := open(t, root, o)
			if got := lines(t, s); !slices.Equal(got, want) {
				t.Fatalf("tree %d (cached: %v): %s", i, s.Cached(), differing(got, want))
			}
			total := 0
			for label, c := range s.Classes() {
				total += c.Samples
				if got := want[total-1]; got.label != label || !strings.HasPrefix(got.key, c.Name+"/") {
					t.Fatalf("tree %d: class %d is %+v, but its last sample %+v", i, label, c, got)
				}
			}
			if total != len(want) {
				t.Fatalf("tree %d: the classes have %d samples, want %d", i, total, len(want))
			}
		}
	}
}
