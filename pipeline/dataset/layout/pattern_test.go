package layout

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// folderOf is the store of a folder.
func folderOf(t testing.TB, root string) *store.Files {
	t.Helper()
	from, err := store.OpenFiles(root, "", nil)
	must(t, err)
	t.Cleanup(func() { must(t, from.Close()) })
	return from
}

func TestPatterns(t *testing.T) {
	from := folderOf(t, grow(t, t.TempDir(), "a-9.tar", "a-10.tar", "a-11.tar", "b/x.tar", "b/y.tar", "c/x.tar", ".hidden.tar", "notes"))
	for pattern, want := range map[string]string{
		"a-{9..11}.tar": "a-9.tar a-10.tar a-11.tar", "a-{009..011}.tar": "a-009.tar a-010.tar a-011.tar", "{b,c}/x.tar": "b/x.tar c/x.tar",
		"*.tar": "a-10.tar a-11.tar a-9.tar", "[bc]/*.tar": "b/x.tar b/y.tar c/x.tar", "c/?.tar": "c/x.tar", "{c,b}/*.tar": "c/x.tar b/x.tar b/y.tar",
		"b/x.tar": "b/x.tar", "{a,b}{0..1}": "a0 a1 b0 b1", "*/x.tar": "b/x.tar c/x.tar",
	} {
		got, err := matching(t.Context(), from, pattern)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v, want %s", pattern, got, err, want)
		}
	}
	for _, pattern := range []string{
		"a-{9..}.tar", "a-{3..2}.tar", "a-{x}.tar", "a-{0..9999999999}.tar", "a-{1..3", "{a/b,c}.tar", "{{a,b},c}", "nothing-*.tar", "[", "{a,a}.tar", "{..,b}/x.tar", "*/../x.tar", "../*.tar", "b/{,/}x.tar",
		strings.Repeat("{0..99}", 9), "a-{1..99999999999999999999}",
	} {
		if got, err := matching(t.Context(), from, pattern); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %q, %v, want an error of the layout", pattern, got, err)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, seed := range []string{"a-{000..146}.tar", "{a,b}/*.tar", "[a-c]?", "{", "}{", "{1..2}{1..2}", "{0..9999999}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		all, err := expand(pattern)
		if err != nil && !errors.Is(err, ErrLayout) {
			t.Fatal(err)
		}
		if len(all) > maxObjects || slices.ContainsFunc(all, func(s string) bool { return len(s) > len(pattern)+20*strings.Count(pattern, "{") }) {
			t.Fatalf("%d names", len(all))
		}
	})
}
