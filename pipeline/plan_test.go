package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/internal/budget"
	"github.com/feedwater-io/feedwater/pipeline/order"
)

func parse(t *testing.T, text string) *Plan {
	t.Helper()
	p, err := ParsePlan([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// The canonical form and the hashes are a contract: states and batch names outlive versions.
func TestCanonicalPlanIsPinned(t *testing.T) {
	p := parse(t, `{"seed": 18446744073709551615, "transforms": [{"op": "RandomResizedCrop", "size": 224}]}`)
	const want = `{"version":1,"source":{"root":"","path":"","fingerprint":""},"seed":18446744073709551615,"shuffle":false,"reference":"pillow-13",` +
		`"transforms":[{"op":"RandomResizedCrop","size":[224,224],"scale":[0.08,1],"ratio":[0.75,1.3333333333333333],"interpolation":"bilinear"}],` +
		`"fields":["image","label"],"on_error":"raise","limits":{"encoded_bytes":268435456,"side":65500,"pixels":178956970,"scans":1000,"scan_blocks":134217728}}`
	if got := string(p.Canonical()); got != want {
		t.Errorf("canonical form\n%s\nwant\n%s", got, want)
	}
	if again := parse(t, want); string(again.Canonical()) != want {
		t.Error("the canonical form is not its own canonical form")
	}
	blocks := parse(t, `{"shuffle": "blocks:64"}`)
	for name, h := range map[string][2]string{
		"shuffled":           {parse(t, `{"shuffle": true}`).OrderHash(), "e3efb9a3d4ebda225935e8366b10f283997710e685c64d0edecd281e6c73a300"},
		"shuffled in blocks": {blocks.OrderHash(), "62e27cde2d65840a688a3023bc7fa920ae8bfaef780eda22419c215325715c83"},
		"plan":               {p.Hash(), "f0492b84aac7e43f19ef6105121b73a4c9d173fe7947afa42b638aea4d3748ad"}, "order": {p.OrderHash(), "b25d9b46c0054deee9a68417d1f8b4143e275ae06695d3c1c6f53eb893a40a45"}, "pixels": {p.PixelHash(), "b39973176da15f6132593ce221c78215d4f8d9dbbbd640b9a3e2ea4cd438f73c"},
	} {
		if h[0] != h[1] {
			t.Errorf("%s hash %s, pinned %s", name, h[0], h[1])
		}
	}
}

func TestHashesCoverWhatTheyShould(t *testing.T) {
	base := parse(t, `{}`)
	for _, c := range []struct {
		text                string
		plan, order, pixels bool // changed
	}{
		{`{"source": {"root": "a", "path": "b"}}`, false, false, false},
		{`{"source": {"fingerprint": "` + strings.Repeat("ab", 32) + `"}}`, true, true, false},
		{`{"seed": 1}`, true, true, true},
		{`{"shuffle": true}`, true, true, false},
		{`{"shuffle": false}`, false, false, false},
		{`{"shuffle": null}`, false, false, false},
		{`{"shuffle": "blocks:64"}`, true, true, false},
		{`{"transforms": [{"op": "CenterCrop", "size": 5}]}`, true, false, true},
		{`{"reference": "pillow-12"}`, true, false, true},
		{`{"on_error": "skip"}`, true, false, true},
		{`{"limits": {"side": 9}}`, true, false, true},
		{`{"apply_exif": true}`, true, false, true},
		{`{"apply_exif": false}`, false, false, false},
		{`{"fields": ["label"]}`, true, false, true},
		{`{"fields": ["image", "label", "index"]}`, false, false, false},
		{`{"fields": ["image", "label", "txt"]}`, true, false, true},
		{`{"source": {"label": "json:label"}}`, false, false, false},
	} {
		p := parse(t, c.text)
		got := [3]bool{p.Hash() != base.Hash(), p.OrderHash() != base.OrderHash(), p.PixelHash() != base.PixelHash()}
		if got != [3]bool{c.plan, c.order, c.pixels} {
			t.Errorf("%s changed plan, order, pixels: %v", c.text, got)
		}
	}
}

func TestBadPlans(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "plan",
		`[]`:                               "JSON",
		`{} {}`:                            "text after",
		`{"sed": 1}`:                       "sed: no such member; did you mean seed?",
		`{"transform": []}`:                "transform: no such member; did you mean transforms?",
		`{"source": {"roots": "a"}}`:       "did you mean root?",
		`{"masks": {"palete": []}}`:        "did you mean palette?",
		`{"nothing near": 1}`:              "nothing near: no such member",
		`{"seed": -1}`:                     "seed",
		`{"seed": "1"}`:                    "seed: a JSON string",
		`{"shuffle": "yes"}`:               `shuffle: "yes" is none of true, false and "blocks:N"`,
		`{"shuffle": 64}`:                  `shuffle: 64 is none of`,
		`{"shuffle": "blocks"}`:            `shuffle: "blocks" is none of`,
		`{"shuffle": "blocks:"}`:           `shuffle: "blocks:" is none of`,
		`{"shuffle": "blocks:1"}`:          `N from 2 to 4294967296`,
		`{"shuffle": "blocks:064"}`:        `shuffle: "blocks:064"`,
		`{"shuffle": "blocks:+64"}`:        `shuffle: "blocks:+64"`,
		`{"shuffle": "blocks:6.4"}`:        `shuffle: "blocks:6.4"`,
		`{"shuffle": "blocks:4294967297"}`: `shuffle: "blocks:4294967297"`,
		`{"shuffle": ["blocks:8"]}`:        `shuffle: ["blocks:8"] is none of`,
		`{"version": 2}`:                   "did you mean 1",
		`{"reference": "pillow-11"}`:       "pillow-13",
		`{"on_error": "ignore"}`:           "raise, skip, substitute",
		`{"fields": ["image", "image.0"]}`: `fields[1]: "image.0" is none of image, label, mask`,
		`{"fields": ["image", "a,b"]}`:     `fields[1]: "a,b"`,
		`{"fields": ["image", "key"]}`:     `fields[1]: "key"`,
		`{"source": {"label": "json:"}}`:   `source.label: "json:" names no member`,
		`{"masks": {"label": "cls"}, "fields": ["image", "mask"]}`:                     "masks.label",
		`{"fields": ["image", "image"]}`:                                               "twice",
		`{"source": {"fingerprint": "xyz"}}`:                                           "source.fingerprint",
		`{"limits": {"side": 70000}}`:                                                  "limits: side 70000",
		`{"limits": {"scans": 0}}`:                                                     "limits: scans 0",
		`{"limits": {"scan_blocks": -1}}`:                                              "limits: scan_blocks -1",
		`{"limits": {"scenes": 7}}`:                                                    "scenes: no such member; did you mean scans?",
		`{"transforms": [{"op": "RandomResizedCorp", "size": 224}]}`:                   "did you mean RandomResizedCrop?",
		`{"transforms": [{"op": "RandomCropResize", "size": 224}]}`:                    "did you mean RandomResizedCrop?",
		`{"transforms": [{"op": "Resize", "size": [1, 2, 3]}]}`:                        "transforms[0].size",
		`{"transforms": [{"op": "Resize", "size": 5, "antialas": true}]}`:              "transforms[0].antialas",
		`{"limits": {"pixels": 99}, "transforms": [{"op": "CenterCrop", "size": 10}]}`: "over limits.pixels",
		strings.Repeat(" ", maxPlanBytes+1):                                            "the limit is",
	} {
		_, err := ParsePlan([]byte(text))
		var e *batch.PlanError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want something with %q", text, err, want)
		}
	}
}

// FuzzParsePlan: any text is a plan with a canonical form, or an error that names what is wrong.
func FuzzParsePlan(f *testing.F) {
	f.Add([]byte(`{"seed": 1, "transforms": [{"op": "Resize", "size": [256]}, {"op": "CenterCrop", "size": [224, 224]}]}`))
	f.Add([]byte(`{"limits": {"side": 1e3}, "fields": null, "source": {"fingerprint": ""}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p *Plan
		var err error
		budget.Hold(t, 1<<20+1000*uint64(len(text)), func() { p, err = ParsePlan(text) })
		if err != nil {
			var e *batch.PlanError
			if !errors.As(err, &e) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if c := p.Canonical(); !json.Valid(c) || string(parse(t, string(c)).Canonical()) != string(c) {
			t.Fatalf("the canonical form is not stable: %s", c)
		}
	})
}

// TestPathsThatAreNotUTF8: they come back as they were, and the hash, which knows no place, is that of any other place.
func TestPathsThatAreNotUTF8(t *testing.T) {
	plain, err := ParsePlan([]byte(`{"source": {"path": "/data/a"}, "transforms": [{"op": "CenterCrop", "size": 8}]}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePlan([]byte(`{"source": {"path": "/data/\udce9\u00e9"}, "masks": {"path": "\udc80"}, "fields": ["image", "mask"], "transforms": [{"op": "CenterCrop", "size": 8}]}`))
	if err != nil || p.Source.Path != "/data/\xe9é" || p.Masks.Path != "\x80" {
		t.Fatalf("%v, %v", p, err)
	}
	again, err := ParsePlan(p.Canonical())
	if err != nil || again.Source.Path != p.Source.Path || again.Masks.Path != p.Masks.Path || !utf8.Valid(p.Canonical()) {
		t.Errorf("%s became %v, %v", p.Canonical(), again, err)
	}
	p.Masks, p.Fields = nil, plain.Fields
	if p.Hash() != plain.Hash() {
		t.Error("the place of the data is in the plan's hash")
	}
	if _, err := ParsePlan([]byte(`{"source": {"path": "\ud800"}}`)); err == nil {
		t.Error("a path that no file has is taken")
	}
}

// TestBlocksOfAllSamplesAreRefused: they would leave the list in its order where a permuted one was asked for.
func TestBlocksOfAllSamplesAreRefused(t *testing.T) {
	dir := folder(t)
	count := len(pictures())
	p, err := Open(Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	data, err := dataset.Open(t.Context(), dir, dataset.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = data.Close() })
	for _, size := range []int{count - 1, count, count + 1} {
		_, err := p.Prepare(parse(t, fmt.Sprintf(`{"shuffle": "blocks:%d"}`, size)), data)
		var e *batch.PlanError
		if refused := errors.As(err, &e) && e.Field == "shuffle"; refused != (size >= count) || err != nil && !refused {
			t.Errorf("blocks of %d of %d samples: %v", size, count, err)
		}
	}
}

// TestJobsOrderIsThatOfItsBlocks: batches of a job have the samples that package order names, in later epochs too.
func TestJobsOrderIsThatOfItsBlocks(t *testing.T) {
	j := open(t, folder(t), `{"seed": 7, "shuffle": "blocks:3", "fields": ["label"]}`, Options{Workers: 1})
	for epoch := range uint32(2) {
		want := order.NewBlockPermutation(j.Samples(), 3, 7, epoch)
		for at := range j.Samples() {
			index, _ := j.permutationOf(epoch).At(at)
			if expected, _ := want.At(at); index != expected {
				t.Fatalf("epoch %d, position %d: sample %d, want %d", epoch, at, index, expected)
			}
		}
	}
}
