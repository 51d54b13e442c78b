package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/revision/internal/treetest"
)

// edit replaces the first of a text in a file; of an empty one the file is written as it is.
type edit struct{ file, old, now string }

// round is edits that are made together, and all the units that they move.
type round struct {
	name  string
	edits []edit
	moved []string
	all   bool
}

const kernels = "pipeline/internal/kernel/"

var rounds = []round{
	{name: "what is no code, or decides no byte", edits: []edit{
		{kernels + "idct.go", "// saturate clamps v to 16 bits.", "// saturate does what it says,\n// in three lines\n// of words."},
		{kernels + "jpeg_amd64.s", "TEXT ·idctPairs(SB)", "// A comment.\n\n/* And one\nmore. */\nTEXT   ·idctPairs(SB)"},
		{"pipeline/codec/png/png.go", "ErrBroken = errors.New(", "ErrBroken = errors.New( // here\n"},
		{"pipeline/raster/sharpness.go", "func AdjustSharpness(factor float64) Effect {\n\treturn Effect{InPlace: sharpenInPlace, Numbers: [16]float64{factor}}\n}", ""},
		{"pipeline/raster/elsewhere.go", "", "package raster\n\nfunc SharpenBy(factor float64) Effect {\n" +
			"\treturn Effect{\n\t\tInPlace: sharpenInPlace,\n\t\tNumbers: [16]float64{factor},\n\t}\n}\n"},
		{"pipeline/transform/policy.go", "raster.AdjustSharpness(", "raster.SharpenBy("},
		{"pipeline/transform/random_colour.go", "raster.AdjustSharpness(", "raster.SharpenBy("},
		{"pipeline/transform/timm_policy.go", "raster.AdjustSharpness(", "raster.SharpenBy("},
		{"pipeline/raster/blend.go", "AdjustSharpness(", "SharpenBy("},
		{"pipeline/numerics.go", "uint64(64)", "uint64(65)"},
		{"control/share/busy_meter.go", "package share", "package share\n\nfunc nobodys() int { return 3 }"},
		{"python/feedwater/_order/steps.py", `"""Steps of a whole epoch."""`, `"""How many steps a whole epoch has."""`},
		{"python/feedwater/_order/steps.py", "whole = batch * ranks.world\n", "whole = batch * ranks.world  # of all ranks\n\n"},
	}},
	{name: "a constant, a verdict, a table, a function that several ops call", moved: []string{
		"kernel/jpeg", "codec/png", "op/AutoAugment", "op/ColorJitter", "op/RandomPhotometricDistort", "order", "lasthop",
	}, edits: []edit{
		{kernels + "idct.go", "= 2446", "= 2447"},
		{"pipeline/codec/png/inflate.go", `%w: checksum of the pixels", ErrBroken`, `%w: checksum of the pixels", ErrTruncated`},
		{"pipeline/transform/auto_augment.go", "Posterize 0.4 8  Rotate", "Posterize 0.4 7  Rotate"},
		{"pipeline/raster/hue.go", "func turnHue(e *Effect, w *Workspace, m *pixel.Image) {", "func turnHue(e *Effect, w *Workspace, m *pixel.Image) {\n\t_ = 7"},
		{"python/feedwater/_common/ranks.py", "return -(-count // self.world)", "return -(-count // self.world) + 0"},
		{"client/agent/lasthop/noise.go", "113<<23", "114<<23"},
	}},
	{name: "assembly, what runs by itself, what is called by interfaces alone", moved: []string{
		"kernel/resize", "codec/gif", "exif", "op/RandomErasing", "draws", "lasthop",
	}, edits: []edit{
		{kernels + "resize_amd64.s", "VPMADDWD     Y10, Y11, Y11", "VPMADDWD     Y10, Y11, Y12"},
		{"pipeline/codec/gif/more.go", "", "package gif\n\nfunc init() { _ = 3 }\n"},
		{"pipeline/codec/upright.go", "u.row++", "u.row += 1"},
		{"pipeline/transform/random_erasing.go", "drawParameters(d rng, p *program, rec *Draw) error {", "drawParameters(d rng, p *program, rec *Draw) error {\n\t_ = 7"},
		{"pipeline/order/draw.go", "(1.0 / (1 << 24))", "(1.0 / (1 << 23))"},
		{"python/feedwater/_value_table.py", "CHANNELS, VALUES = 3, 256", "CHANNELS, VALUES = 3, 255"},
	}},
	{name: "what few plans and pictures use", moved: []string{"exif", "oversize"}, edits: []edit{
		{"pipeline/transform/program.go", "maxWhole = 1 << 24", "maxWhole = 1 << 23"},
		{"pipeline/codec/exif/tiff.go", "orientationTag = 0x0112", "orientationTag = 0x0113"},
		{"pipeline/codec/upright.go", "d.upright.orientation = orientation", "d.upright.orientation = orientation + 0"},
	}},
	{name: "what amd64 does not build; who changes a variable", moved: []string{"kernel/resize", "codec/jpeg", "codec/bmp"}, edits: []edit{
		{kernels + "resize_none.go", "panic(\"kernel: built without assembly\")", "panic(\"kernel: built without\")"},
		{"pipeline/codec/jpeg/lane_noasm.go", "l.readScalar(cells, m, n)", "l.readScalar(cells, m, n+0)"},
		{"pipeline/codec/bmp/more.go", "", "package bmp\n\n// Nobody calls it, as far as can be seen.\nfunc Change() { ErrBroken = nil }\n"},
	}},
	{name: "the version of Go", all: true, edits: []edit{{"go.mod", "\ngo 1.26.0\n", "\ngo 1.26.1\n"}}},
}

// An edit moves the digests of the units that are made of it, and no other.
func TestMutants(t *testing.T) {
	python := os.Getenv("FEEDWATER_PYTHON")
	if python == "" {
		python = "python3"
	}
	dir := treetest.Copy(t, filepath.Join("..", "..", "..", ".."))
	before, err := Digest(dir, python)
	if err != nil {
		t.Fatal(err)
	}
	checkModules(t, before)
	for _, r := range rounds {
		t.Run(r.name, func(t *testing.T) {
			apply(t, dir, r.edits)
			after, err := Digest(dir, python)
			if err != nil {
				t.Fatal(err)
			}
			var moved []string
			for name, u := range before {
				if after[name].Digest != u.Digest {
					moved = append(moved, name)
				}
			}
			slices.Sort(moved)
			slices.Sort(r.moved)
			if r.all && len(moved) != len(before) || !r.all && !slices.Equal(moved, r.moved) {
				t.Errorf("moved %v, not %v", moved, r.moved)
			}
		})
	}
}

// checkModules looks at which units have a module of others in them.
func checkModules(t *testing.T, all map[string]Unit) {
	t.Helper()
	for module, want := range map[string][]string{
		"golang.org/x/image":            nil,                   // tests have it
		"github.com/klauspost/compress": {"codec/png", "exif"}, // EXIF data in zTXt
	} {
		var units []string
		for name, u := range all {
			if slices.ContainsFunc(u.Declarations, func(d string) bool { return strings.HasPrefix(d, module+" v") }) {
				units = append(units, name)
			}
		}
		if slices.Sort(units); !slices.Equal(units, want) {
			t.Errorf("%s is in %v, not %v", module, units, want)
		}
	}
}

// Another sum of a module is another unit.
func TestSumsOfModules(t *testing.T) {
	parts := []part{{text: "x", modules: []string{"example.org/a v1.0.0"}}}
	one, err := (&modules{sum: []string{"example.org/a v1.0.0/go.mod h1:x", "example.org/a v1.0.0 h1:a"}}).join(parts)
	if err != nil {
		t.Fatal(err)
	}
	other, err := (&modules{sum: []string{"example.org/a v1.0.0 h1:b"}}).join(parts)
	if err != nil || other.Digest == one.Digest {
		t.Errorf("both are %s (%v)", one.Digest, err)
	}
	if _, err := (&modules{}).join(parts); err == nil {
		t.Error("a module without a sum")
	}
}

// apply makes the edits until the end of the test.
func apply(t *testing.T, dir string, edits []edit) {
	t.Helper()
	was := map[string][]byte{}
	t.Cleanup(func() {
		for path, text := range was {
			if text == nil {
				_ = os.Remove(path)
			} else {
				treetest.Write(t, path, string(text))
			}
		}
	})
	for _, e := range edits {
		path := filepath.Join(dir, e.file)
		text, err := os.ReadFile(path)
		if _, seen := was[path]; !seen {
			was[path] = text
		}
		if e.old != "" && (err != nil || !strings.Contains(string(text), e.old)) {
			t.Fatalf("%s has no %q (%v)", e.file, e.old, err)
		}
		now := strings.Replace(string(text), e.old, e.now, 1)
		if e.old == "" {
			now = e.now
		}
		treetest.Write(t, path, now)
	}
}
