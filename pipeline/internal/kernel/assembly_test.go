package kernel

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What every processor of amd64 has, and what package raster asks for by itself where it uses it.
var alwaysThere = map[string]bool{"CMOV": true, "MMX+": true, "SSE2": true, "FMA3": true}

var (
	required = regexp.MustCompile(`// Requires: (.*)\n$`)
	wide     = regexp.MustCompile(`\b([XYZ](1[6-9]|2[0-9]|3[01])|Z[0-9]+|K[0-7])\b`) // avo numbers on from 15 when it runs out of registers
	upper    = regexp.MustCompile(`\b[YZ][0-9]+\b`)
)

// Assembly needs no instructions but those that its level asks the processor for, and clears the upper parts of registers that it has used.
func TestAssemblyNeedsWhatItsLevelAsksFor(t *testing.T) {
	functions := 0
	for _, name := range assembly(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		level, has := AVX2, maps.Clone(alwaysThere)
		maps.Copy(has, neededByAVX2())
		if strings.HasSuffix(name, "_avx512_amd64.s") {
			level = AVX512
			maps.Copy(has, neededByAVX512())
		}
		parts := strings.SplitAfter(string(text), "\nTEXT ")
		functions += len(parts) - 1
		for i, body := range parts[1:] {
			head := strings.TrimSuffix(parts[i], "TEXT ")
			function, _, _ := strings.Cut(body, "(SB)")
			if m := required.FindStringSubmatch(head); m != nil {
				for need := range strings.SplitSeq(m[1], ", ") {
					if _, ok := has[need]; !ok {
						t.Errorf("%s: %s needs %s", name, function, need)
					}
				}
			} else if upper.MatchString(body) {
				t.Errorf("%s: %s does not say what it needs", name, function)
			}
			if m := wide.FindString(body); m != "" && level == AVX2 {
				t.Errorf("%s: %s uses %s", name, function, m)
			}
			if upper.MatchString(body) && strings.Count(body, "\tRET\n") != strings.Count(body, "\tVZEROUPPER\n\tRET\n") {
				t.Errorf("%s: %s returns without VZEROUPPER", name, function)
			}
		}
	}
	if functions < 40 {
		t.Errorf("only %d functions were found", functions)
	}
}

// assembly lists all assembly of package pipeline and below.
func assembly(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, "_amd64.s") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
