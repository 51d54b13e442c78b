package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/identities"
)

// keysOf are the first column of the table behind a heading of docs/configuration.md.
func keysOf(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var keys []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(section, -1) {
		keys = append(keys, m[1])
	}
	slices.Sort(keys)
	return keys
}

// The page has every option, and no other.
func TestConfigurationIsDocumented(t *testing.T) {
	var want []string
	newServe().Flags().VisitAll(func(f *pflag.Flag) {
		if isSetting(f) && !f.Hidden {
			want = append(want, f.Name)
		}
	})
	if got := keysOf(t, "Keys"); !slices.Equal(got, want) {
		t.Errorf("the page has %q, serve has %q", got, want)
	}
	want = slices.Sorted(slices.Values(identities.Keys))
	if got := keysOf(t, "What each identity may do"); !slices.Equal(got, want) {
		t.Errorf("the page has %q, identities have %q", got, want)
	}
	var members []string
	for f := range reflect.TypeFor[identities.Identity]().Fields() {
		members = append(members, f.Tag.Get("yaml"))
	}
	if slices.Sort(members); !slices.Equal(members, want) {
		t.Errorf("identity has %q, its keys are %q", members, want)
	}
}
