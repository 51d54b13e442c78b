package layout

import (
	"archive/tar"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
	from := folderOf(t, grow(t, t.TempDir(), "a-9.tar", "a-10.tar", "a-11.tar", "b/x.tar", "b/y.tar", "c/x.tar", ".hidden.tar", "notes", "d[1]/s{1}.tar"))
	for pattern, want := range map[string]string{
		"a-{9..11}.tar": "a-9.tar a-10.tar a-11.tar", "a-{009..011}.tar": "a-009.tar a-010.tar a-011.tar", "{b,c}/x.tar": "b/x.tar c/x.tar",
		"*.tar": "a-10.tar a-11.tar a-9.tar", "[bc]/*.tar": "b/x.tar b/y.tar c/x.tar", "c/?.tar": "c/x.tar", "{c,b}/*.tar": "c/x.tar b/x.tar b/y.tar",
		"a-{0..10}": "a-0 a-1 a-2 a-3 a-4 a-5 a-6 a-7 a-8 a-9 a-10", "{00..3}": "00 01 02 03", "{0..03}": "00 01 02 03", "{8..010}": "008 009 010",
		"[!b]/*.tar": "c/x.tar", "[^b]/*.tar": "c/x.tar", "a-[!1]*.tar": "a-9.tar", "[a!]-9.tar": "a-9.tar",
		"d[[]1]/s[{]1}.tar": "d[1]/s{1}.tar", "d[[]1]/s[{]{1..1}}.tar": "d[1]/s{1}.tar", "d[[]?]/*": "d[1]/s{1}.tar",
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

// TestNamesOfPatternsAreBounded: names are not written where they would take a node's memory.
func TestNamesOfPatternsAreBounded(t *testing.T) {
	for _, pattern := range []string{strings.Repeat("a", 700) + "{000..999}{000..999}", "{000..999}{000..999}" + strings.Repeat("a", 700)} {
		if all, err := expand(pattern); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), "a pattern whose names have") {
			t.Errorf("%d names, %v", len(all), err)
		}
	}
}

// TestMissingOfPatterns: of a pattern with braces the error says which files are missing, not only one of them.
func TestMissingOfPatterns(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a-0.tar", "a-1.tar", "b-0.tar", "b-099.tar"} { // whole, so that those that are not there are the only fault
		must(t, os.WriteFile(filepath.Join(root, name), shardOf(t, tar.FormatUSTAR, "0/x.jpg x"), 0o600))
	}
	from := folderOf(t, root)
	for pattern, says := range map[string]string{
		"s-{0..3}.tar":     "s-{0..3}.tar: none of its 4 files is there, s-0.tar to s-3.tar",
		"{s,t}.parquet":    "{s,t}.parquet: none of its 2 files is there, s.parquet to t.parquet",
		"a-{0..4}.tar":     "a-{0..4}.tar: of its 5 files 3 are not there: a-2.tar to a-4.tar",
		"a-{1..2}.tar":     "a-{1..2}.tar: of its 2 files 1 is not there: a-2.tar",
		"b-{000..099}.tar": "b-{000..099}.tar: of its 100 files at least 63 are not there: b-000.tar to b-098.tar",
		"s-{000..099}.tar": "s-{000..099}.tar: of its 100 files at least 64 are not there: s-000.tar to s-099.tar",
		"s.tar":            "s.tar: ",
	} {
		if err := CheckNames(t.Context(), from, pattern); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: %v, want %s", pattern, err, says)
		}
		var l Layout = Tar{Pattern: pattern}
		if strings.HasSuffix(pattern, ".parquet") {
			l = Parquet{Pattern: pattern}
		}
		_, err := scanned(t.Context(), l, from)
		if !errors.Is(err, fs.ErrNotExist) || pattern != "s.tar" && !strings.HasPrefix(err.Error(), says) {
			t.Errorf("scan of %s: %v, want %s", pattern, err, says)
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

// TestLiteral: a name is escaped so that it stands for itself, and is read back.
func TestLiteral(t *testing.T) {
	for name, pattern := range map[string]string{"s{1}.tar": "s[{]1}.tar", "[a]*?": "[[]a][*][?]", "a-b": "a-b", "]{}": "][{]}"} {
		back, one := Literal(pattern)
		if Escape(name) != pattern || !one || back != name {
			t.Errorf("%s: %s, and back %q, %v", name, Escape(name), back, one)
		}
	}
	for _, pattern := range []string{"[a]", "{a,b}", "*", "a[", "[{"} {
		if name, one := Literal(pattern); one {
			t.Errorf("%s stands for %s alone", pattern, name)
		}
	}
}
