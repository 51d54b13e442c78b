package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/revision/internal/treetest"
)

// moves are packages and other places for them. In some of them units begin.
var moves = []struct {
	from, to string
	begins   bool
}{
	{"pipeline/transform", "pipeline/looks", true}, {"pipeline/order", "pipeline/sequence", true}, {"pipeline/pixel", "pipeline/raw", false},
}

// Packages that are moved and named anew move no digest. An edit in one of them, made together with the move, is
// compared with the tree in which it stands where it was.
func TestMovedPackages(t *testing.T) {
	dir := treetest.Copy(t, filepath.Join("..", "..", "..", "..", ".."))
	raise := []string{"raise"} // so that the table is of this source, whatever is being worked on
	for line := range strings.Lines(units(t, dir, "check")) {
		if unit, _, is := strings.Cut(line, " is not the source"); is {
			raise = append(raise, unit)
		}
	}
	units(t, dir, raise...)
	git(t, dir, "init", "-q")
	commit(t, dir)
	before := digests(t, dir)
	for _, m := range moves {
		treetest.MovePackage(t, dir, m.from, m.to)
		if m.begins {
			treetest.Replace(t, filepath.Join(dir, "pipeline/revision/internal/source/unit.go"), `"`+m.from+`"`, `"`+m.to+`"`)
		}
	}
	if after := digests(t, dir); after != before {
		t.Errorf("before\n%sand after\n%s", before, after)
	}
	op := filepath.Join(dir, "pipeline/looks/pad.go")
	const cut = "return o.cutPadded(p, o.Padding.paddedRectangle(p.currentSize()))"
	treetest.Replace(t, op, cut, "_ = 7\n\t"+cut)
	if now := units(t, dir, "same", "op/Pad"); !strings.Contains(now, "op/Pad: the same in ") {
		t.Errorf("the same bytes: %s", now)
	}
	commit(t, dir)
	treetest.Replace(t, op, cut, strings.Replace(cut, "p.currentSize())", "p.currentSize()).Add(image.Pt(1, 0))", 1))
	if now := units(t, dir, "same", "op/Pad"); !strings.Contains(now, "make raise UNITS=op/Pad") {
		t.Errorf("other bytes: %s", now)
	}
}

// digests are the lines that show each unit's digest.
func digests(t *testing.T, dir string) (all string) {
	t.Helper()
	for line := range strings.Lines(units(t, dir, "show")) {
		if !strings.HasPrefix(line, "\t") {
			all += line
		}
	}
	if !strings.Contains(all, "codec/png, revision ") {
		t.Fatalf("no digests: %s", all)
	}
	return all
}

// units runs the command of the tree in dir and returns what it says.
func units(t *testing.T, dir string, arguments ...string) string {
	t.Helper()
	run := exec.Command("go", append([]string{"run", "-trimpath", "./pipeline/revision/internal/cmd/units"}, arguments...)...)
	run.Dir, run.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	out, _ := run.CombinedOutput() // what failed is in it
	return string(out)
}

// commit notes all that is in dir.
func commit(t *testing.T, dir string) {
	t.Helper()
	git(t, dir, "add", "-A")
	git(t, dir, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "as it is")
}

func git(t *testing.T, dir string, arguments ...string) {
	t.Helper()
	run := exec.Command("git", arguments...)
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", arguments, err, out)
	}
}
