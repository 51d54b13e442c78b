package pipeline

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var fused = regexp.MustCompile(`\((\S+\.go):(\d+)\)\tFN?M(?:ADD|SUB)`)

// TestNoProductIsFusedUnasked: where a machine can, Go makes one rounding of x*y+z unless the product is converted explicitly, and then
// arm64 and amd64 disagree in a last bit. So what is compiled for arm64 fuses only where math.FMA is written.
func TestNoProductIsFusedUnasked(t *testing.T) {
	if testing.Short() {
		t.Skip("a compiler's listing is the same under the race detector")
	}
	lines := sources(t)
	// The cache of builds may have a package and not its listing, and then go prints nothing. A folder of this run's own among the flags
	// (-D resolves relative imports, and there are none) makes go compile every package again.
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath=false", "-gcflags=-S -D="+t.TempDir(), "./...")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	listing, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %.2000s", err, listing)
	}
	asked := 0
	for _, found := range fused.FindAllStringSubmatch(string(listing), -1) {
		if lines[found[1]] == nil { // of another package, inlined here: none of those makes pixels
			continue
		}
		n, _ := strconv.Atoi(found[2])
		if line := lines[found[1]][n-1]; strings.Contains(line, "math.FMA(") {
			asked++
		} else {
			t.Errorf("%s:%d: on arm64 this product is fused, on amd64 it is not: %s", found[1], n, strings.TrimSpace(line))
		}
	}
	if asked == 0 {
		t.Error("not even math.FMA was found: the listing is not understood")
	}
}

// sources are the lines of all files that are compiled. That they are read here also tells the cache of test results what this one is of.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	lines := map[string][]string{}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(here, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		lines[path] = strings.Split(string(text), "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}
