package jpeg

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
)

// TestTranscodings compares photographs, as they are and in all their transcodings, with Pillow: the whole pictures and regions of them, at every level. It needs
// a Python with Pillow 13, which FEEDWATER_PYTHON names; elsewhere TestPillow stands for it. FEEDWATER_JPEG_PHOTOS is how many
// photographs are taken, 40 unless it is set; all of them if it is 0.
func TestTranscodings(t *testing.T) {
	interpreter := os.Getenv("FEEDWATER_PYTHON")
	if interpreter == "" {
		return
	}
	most := 40
	if v := os.Getenv("FEEDWATER_JPEG_PHOTOS"); v != "" {
		var err error
		if most, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), interpreter, append([]string{"testdata/transcode.py"}, photographFiles(t, most)...)...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	counts := compareTranscodings(t, bufio.NewReader(out))
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("files that are equal, by kind: %v", counts)
}

// photographFiles are the names of photographs, at most so many unless most is 0, or of generated ones.
func photographFiles(t *testing.T, most int) (names []string) {
	all := photographs(t)
	if most == 0 || most > len(all) {
		most = max(len(all), 8)
	}
	for i := range min(most, len(all)) {
		names = append(names, all[i*len(all)/most])
	}
	for i := 0; len(all) == 0 && i < most; i++ {
		name := filepath.Join(t.TempDir(), fmt.Sprint(i, ".jpg"))
		if err := os.WriteFile(name, jpegtest.File(i%5, i, 4), 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// compareTranscodings reads what transcode.py writes.
func compareTranscodings(t *testing.T, in *bufio.Reader) map[string]int {
	counts, decoders, r := map[string]int{}, allLevels(), rand.New(rand.NewPCG(8, 8))
	for {
		var kind string
		var w, h, size int
		if _, err := fmt.Fscanf(in, "%s %d %d %d\n", &kind, &w, &h, &size); errors.Is(err, io.EOF) {
			return counts
		} else if err != nil {
			t.Fatal(err)
		}
		file, want := make([]byte, size), make([]byte, 3*w*h)
		for _, b := range [][]byte{file, want} {
			if _, err := io.ReadFull(in, b); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range decoders {
			gotW, gotH, got, err := decodeAll(d, file)
			if err != nil || gotW != w || gotH != h || !bytes.Equal(got, want) {
				t.Errorf("%s: %dx%d (%v), want %dx%d; first difference at %d", kind, gotW, gotH, err, w, h, firstDifference(got, want))
				continue
			}
			for range 3 {
				region := randomRegion(r, w, h)
				if got, err := decodeRegion(d, region); err != nil || !bytes.Equal(got, crop(want, w, region)) {
					t.Errorf("%s: region %v of %dx%d differs (%v)", kind, region, w, h, err)
				}
			}
		}
		counts[kind]++
	}
}
