package main

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/identities"
)

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "0B": 0, "0GiB": 0, "1": 1, "4096": 4096, "1B": 1, "1kB": 1000, "2MB": 2e6, "3GB": 3e9, "1TB": 1e12,
		"1KiB": 1 << 10, "4GiB": 4 << 30, "0.5GiB": 1 << 29, "1.5 MiB": 3 << 19, "1e3": 1000, "2TiB": 2 << 40,
	} {
		var b bytesize.Size
		if err := b.Set(text); err != nil || int64(b) != want {
			t.Errorf("%q is %d, %v; want %d", text, b, err, want)
		}
	}
	for _, text := range []string{"", "-1", "0.4", "nan", "inf", "4gib", "4G", "GiB", "1e30GiB", "five MB", "4 294"} {
		b := bytesize.Size(7)
		if err := b.Set(text); err == nil || !strings.Contains(err.Error(), "4GiB") || b != 7 {
			t.Errorf("%q is %d, %v", text, b, err)
		}
	}
	for size, want := range map[bytesize.Size]string{0: "0", 1: "1", 1023: "1023", 1 << 10: "1KiB", 4 << 30: "4GiB", 3 << 19: "1.5MiB", math.MaxInt64: "8.389e+06TiB"} {
		if got := size.String(); got != want {
			t.Errorf("%d is written %q, want %q", size, got, want)
		}
	}
}

// 0 can be said where it means something, and only there; what cannot be said is told with its place.
func TestZeroSizes(t *testing.T) {
	t.Setenv("FEEDWATER_SHARE_MEMORY", "0")
	var i identities.Map
	if err := i.Set("{a: {max-memory: 0, bytes-per-second: 0, max-wants: 0}}"); err != nil || i["a"].MaxMemory != 0 {
		t.Errorf("no limits: %v", err)
	}
	for text, says := range map[string]string{
		"{a: {max-wants: 1}, b: {max-memory: much}}": `identity b: max-memory: "much" is no size`,
		"{a: {max-wants: many}}":                     "identity a: max-wants: ",
	} {
		if err := i.Set(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
	f := newServe().Flags()
	if err := fillFlags("serve", f, nil); err != nil {
		t.Error(err)
	}
	if err := f.Set("share-memory", "0"); err != nil {
		t.Error(err)
	}
	if err := f.Set("index-limit", "0"); err == nil {
		t.Error("an index that may take nothing is taken")
	}
}

func TestFolders(t *testing.T) {
	for text, want := range map[string]folders{
		"a=/x":                {"a": "/x"},
		"a=/x,b=/y":           {"a": "/x", "b": "/y"},
		"a=/x, b=/y":          {"a": "/x", "b": "/y"},
		"a=/x,y":              {"a": "/x,y"},
		"a=/x,y,b=/z":         {"a": "/x,y", "b": "/z"},
		"a=/day=1/z":          {"a": "/day=1/z"},
		"a=/x,/y/day=1,b=c,d": {"a": "/x,/y/day=1", "b": "c,d"},
		"a=relative folder":   {"a": "relative folder"},
	} {
		f := folders{}
		if err := f.Set(text); err != nil || !maps.Equal(f, want) {
			t.Errorf("%q is %v, %v; want %v", text, f, err, want)
		}
	}
	for _, text := range []string{"", "a", "a=", "=/x", "a/b=/x", "a=/x,a=/y", "/x"} {
		if err := (folders{}).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	f := folders{}
	for _, text := range []string{"b=/y", "a=/x"} {
		if err := f.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Set("a=/z"); err == nil || !strings.Contains(err.Error(), `"a"`) || f.String() != "a=/x,b=/y" {
		t.Errorf("the same name again: %v, %v", err, f)
	}
}
