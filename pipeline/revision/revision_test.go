package revision

import (
	"slices"
	"strings"
	"testing"
)

func TestTheTableIsWhole(t *testing.T) {
	if broken != nil {
		t.Fatal(broken)
	}
	for _, name := range []string{Order, Draws, Batch, Files, EXIF, Oversize, LastHop, Op("Resize"), Op("JPEG"), Codec("jpeg"), Codec("bmp")} {
		if Build()[name] == 0 {
			t.Errorf("the table has no %s", name)
		}
	}
	for name, u := range table {
		for _, used := range u.Uses {
			if _, there := table[used]; !there {
				t.Errorf("%s uses %s, which the table does not have", name, used)
			}
		}
	}
}

func TestTheTableIsAsItIsWritten(t *testing.T) {
	if Format(table) != text {
		t.Errorf("the table is written as\n%s", Format(table))
	}
}

func TestLinesThatAreNoUnits(t *testing.T) {
	for line, problem := range map[string]string{
		"order 1":            "line 1: 2 words",
		"order 0 -":          `"0" is no revision`,
		"order x -":          `"x" is no revision`,
		"order 4294967296 -": "is no revision",
		"a 1 -\na 2 -":       "line 2: a is there twice",
	} {
		if _, err := Parse(line); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestOfAPlan(t *testing.T) {
	s := Build()
	plain, jpeg := s.Of(Plan{Ops: []string{"Resize"}}), s.Of(Plan{Ops: []string{"Resize", "JPEG"}})
	if _, there := plain["kernel/jpeg"]; there || plain["op/Resize"] == 0 || plain[Order] == 0 || len(plain) >= len(jpeg) {
		t.Errorf("%v and %v", plain, jpeg)
	}
	if _, there := plain[LastHop]; there {
		t.Error("the last hop is none of a node's units")
	}
	if turned := s.Of(Plan{ApplyEXIF: true}); turned[EXIF] == 0 || len(turned) != len(s.Of(Plan{}))+1 {
		t.Errorf("with EXIF data %v", turned)
	}
	if got := s.OfOversize(); len(got) != 1 || got[Oversize] == 0 {
		t.Errorf("beyond the limits %v", got)
	}
	if got := s.OfFormat("jpeg"); got["codec/jpeg"] == 0 || got["kernel/jpeg"] == 0 || len(got) != 2 {
		t.Errorf("jpeg uses %v", got)
	}
	other := Build()
	other["op/JPEG"]++
	delete(other, Files)
	if got := jpeg.Differing(other); !slices.Equal(got, []string{Files, "op/JPEG"}) {
		t.Errorf("they differ in %v", got)
	}
	if got := jpeg.Differing(s); got != nil {
		t.Errorf("a build differs from itself in %v", got)
	}
}

func TestBuildIsACopy(t *testing.T) {
	Build()[Order] = 99
	if Build()[Order] == 99 {
		t.Error("callers share one map")
	}
}
