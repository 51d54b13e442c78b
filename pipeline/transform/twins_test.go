package transform

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var updateTwins = flag.Bool("update-twins", false, "rewrite testdata/twins.json")

// twins is what this package and package feedwater of Python both have to know, since a trainer checks a transform, and
// teaches CTAugment, before it has a node. python/tests/test_twins.py reads the same file.
type twins struct {
	EqualDialects []string      `json:"equal_dialects"` // ops that do the same in both dialects
	CTAugment     []learntTwins `json:"ct_augment"`     // in the order of their weights
}

type learntTwins struct {
	Name string `json:"name"`
	Bins []int  `json:"bins"`
}

func TestTwins(t *testing.T) {
	v := twins{EqualDialects: alike}
	for _, l := range learntOps {
		v.CTAugment = append(v.CTAugment, learntTwins{l.name, append([]int{}, l.bins...)})
	}
	got, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const file = "testdata/twins.json"
	if *updateTwins {
		if err := os.WriteFile(file, got, 0o644); err != nil { //nolint:gosec // as git has it
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s has other ops or bins; Python reads it too: go test -run TestTwins -update-twins, and mend Python", file)
	}
}
