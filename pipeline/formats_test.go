package pipeline

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/batch"
)

// mixed makes an image folder of files of all formats, each with an ending that is not its own, and returns what Pillow makes
// of each: size and hash. Damaged files are in a class of their own.
func mixed(t *testing.T) (dir string, said map[string]string) {
	t.Helper()
	z, err := zip.OpenReader("codec/testdata/corpus.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir, said = folder(t), map[string]string{}
	endings := []string{".jpg", ".png", ".webp", ".bmp", ".JPEG"}
	keys := map[string]string{}
	for i, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == "table.txt" {
			for line := range strings.Lines(string(data)) {
				name, rest, _ := strings.Cut(strings.TrimSpace(line), "\t")
				keys[name] = rest
			}
			continue
		}
		class, _, _ := strings.Cut(f.Name, "-")
		key := class + "/" + f.Name + endings[i%len(endings)]
		if i%5 == 0 || class == "turned" {
			_ = os.MkdirAll(filepath.Join(dir, class), 0o755)
			write(t, filepath.Join(dir, key), data)
			said[key] = keys[f.Name]
		}
	}
	return dir, said
}

// replayed makes every sample of the folder once.
func replayed(t *testing.T, dir, plan string) []Sample {
	t.Helper()
	j := open(t, dir, plan, Options{})
	var refs []batch.Ref
	for i := range j.Samples() {
		refs = append(refs, batch.Ref{Index: i})
	}
	samples, err := j.Replay(context.Background(), batch.Name{List: refs}, math.MaxInt, nil)
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

// A folder of all formats gives Pillow's pixels and verdicts, turned or not, whatever the names say.
func TestMixedFolder(t *testing.T) {
	dir, said := mixed(t)
	for _, apply := range []bool{false, true} {
		made, refused, turned := 0, 0, 0
		for _, s := range replayed(t, dir, fmt.Sprintf(`{"apply_exif": %t}`, apply)) {
			want, known := said[s.Key]
			isTurned := strings.HasPrefix(s.Key, "turned/")
			switch {
			case !known || isTurned && !apply || !isTurned && apply:
				continue
			case strings.HasPrefix(want, "refused"):
				if refused++; s.Err == nil {
					t.Errorf("%s: made, Pillow says %s", s.Key, want)
				}
				continue
			case s.Err != nil:
				t.Errorf("%s: %v", s.Key, s.Err)
				continue
			}
			made++
			sum := sha256.Sum256(s.Image)
			if got := fmt.Sprintf("ok\t%d\t%d\t%s", s.Width, s.Height, hex.EncodeToString(sum[:16])); got != want {
				t.Errorf("%s: %s, want %s", s.Key, got, want)
			}
			if isTurned {
				turned++
			}
		}
		if made < 50 || !apply && refused < 50 || apply && turned < 50 {
			t.Errorf("%d made, %d refused, %d turned: too few to say anything", made, refused, turned)
		}
	}
}

// A crop of a file of any format is torchvision's, of the same file with the same parameters; where FEEDWATER_PYTHON names no
// Python that has torchvision, TestMixedFolder and the tests of transform stand for it.
func TestMixedFolderCropped(t *testing.T) {
	python := os.Getenv("FEEDWATER_PYTHON")
	if python == "" {
		return
	}
	dir, _ := mixed(t)
	type crop struct {
		Path       string
		Parameters json.RawMessage
		Hash       string
	}
	var crops []crop
	for _, s := range replayed(t, dir, `{"seed": 5, "transforms": [{"op": "RandomResizedCrop", "size": [24, 40]}]}`) {
		if s.Err == nil && !strings.HasPrefix(s.Key, "damaged/") {
			sum := sha256.Sum256(s.Image)
			crops = append(crops, crop{filepath.Join(dir, s.Key), s.Draws[0].Parameters, hex.EncodeToString(sum[:])})
		}
	}
	asked, err := json.Marshal(crops)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, python, "-c", torchvisionCrops)
	c.Stdin, c.Stderr = bytes.NewReader(asked), os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	if answer := strings.TrimSpace(string(out)); answer != fmt.Sprint(len(crops), " equal") || len(crops) < 100 {
		t.Errorf("%s of %d", answer, len(crops))
	}
}

// torchvisionCrops prints how many crops are equal, and which are not.
const torchvisionCrops = `
import hashlib, json, sys, warnings
from PIL import Image
from torchvision.transforms.v2 import functional as F
warnings.simplefilter("ignore")
equal = 0
for crop in json.load(sys.stdin):
    with open(crop["Path"], "rb") as file:
        image = Image.open(file).convert("RGB")
    p = crop["Parameters"]
    made = F.resized_crop(image, p["top"], p["left"], p["height"], p["width"], [24, 40])
    if hashlib.sha256(made.tobytes()).hexdigest() == crop["Hash"]:
        equal += 1
    else:
        print("differs:", crop["Path"], p)
print(equal, "equal")
`
