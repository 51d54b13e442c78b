package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestTree measures a tree in testdata in which each measure counts some things and leaves out others like them.
func TestTree(t *testing.T) {
	tree, err := loadTree("testdata/tree", "python3")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"files":    {"4", "0", "3", "1"},
		"up":       {"1 of 3", "0 of 0", "0 of 0", "1 of 5"},
		"methods":  {"3", "2"},
		"one-word": {"50 %", "60 %"},
		"laws":     {"3", "2", "2", "2", "2"},
		"long":     {"1"},
		"purpose":  {"2 of 5"},
		"words":    {"3", "2"},
	}
	for _, m := range measures {
		for i, w := range want[m.key] {
			if got, lines := m.values[i].read(tree); got != w {
				t.Errorf("%s %s: %s, want %s:\n%s", m.title, m.values[i].name, got, w, strings.Join(lines, "\n"))
			}
		}
	}
}

func TestPublicNames(t *testing.T) {
	tree, err := loadTree("testdata/tree", "python3")
	if err != nil {
		t.Fatal(err)
	}
	_, names := publicPython(tree)
	public := []string{"feedwater.__init__.one", "feedwater.__init__.two", "feedwater.inner.rules.judge"}
	if !slices.Equal(names, public) {
		t.Errorf("Python %q, want %q", names, public)
	}
	_, wire := publicWire(tree)
	want := []string{
		"Feed: Open(Start) returns (stream Answer)",
		"Reason.REASON_UNSPECIFIED = 0",
		"Start.names = 4 map<string, string>",
		"Start.sizes = 3 repeated uint32",
	}
	if !slices.Equal(wire, want) {
		t.Errorf("wire %q, want %q", wire, want)
	}
}

func TestSplitWords(t *testing.T) {
	for name, want := range map[string]string{
		"settle": "settle", "giveBack": "give back", "_as_made": "as made", "HTTPServer": "http server",
		"readHTTP2Frame": "read http2 frame",
		"Len":            "len", "crc32": "crc32", "serveHTTP": "serve http", "_": "", "ÄndereName": "ändere name",
	} {
		if got := strings.Join(splitWords(name), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestMainClause(t *testing.T) {
	for doc, want := range map[string]string{
		"Package a does it, and that.": "Package a does it", "One\ntwo.\nThree.": "One two",
		"0.1 is not the end": "0.1 is not the end", "": "",
	} {
		if got := mainClause(doc); got != want {
			t.Errorf("%q: %q, want %q", doc, got, want)
		}
	}
}

// TestArrowsUp knows the fewest arrows of these graphs: one for each circle that shares no arrow with another.
func TestArrowsUp(t *testing.T) {
	for graph, want := range map[string]int{
		"":                            0,
		"ab bc ac":                    0,
		"ab bc ca":                    1,
		"ab ba bc cb":                 2,
		"ab bc cd da ac":              1,
		"ab bc ca de ef fd cf xa":     2,
		"ab ba ac ca ad da ae ea":     4,
		"ab ac ad ba ca da bc cb cd":  4,
		"ab cb db eb fb gb bh bi bj ": 0,
	} {
		var arrows []arrow
		for _, a := range strings.Fields(graph) {
			arrows = append(arrows, arrow{a[:1], a[1:]})
		}
		if got := arrowsUp(arrows); len(got) != want {
			t.Errorf("%q: %v, want %d", graph, got, want)
		}
	}
}

// TestArrowsUpIsLeast compares with every order of six files.
func TestArrowsUpIsLeast(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		var arrows []arrow
		for i := range 36 {
			if i/6 != i%6 && random.IntN(2) == 0 {
				arrows = append(arrows, arrow{string(rune('a' + i/6)), string(rune('a' + i%6))})
			}
		}
		if got, want := len(arrowsUp(arrows)), leastUp(arrows, "", "abcdef"); got != want {
			t.Errorf("%v: %d, want %d", arrows, got, want)
		}
	}
}

// leastUp is the fewest arrows up over all orders that begin with some files.
func leastUp(arrows []arrow, begin, rest string) int {
	if rest == "" {
		n := 0
		for _, a := range arrows {
			n += count(strings.Index(begin, a.from) > strings.Index(begin, a.to))
		}
		return n
	}
	least := len(arrows)
	for i := range rest {
		least = min(least, leastUp(arrows, begin+rest[i:i+1], rest[:i]+rest[i+1:]))
	}
	return least
}

func TestHelpDefinesEachMeasure(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"--help"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, m := range measures {
		first, _, _ := strings.Cut(strings.TrimSpace(m.help), "\n")
		if !strings.Contains(out.String(), "--list "+m.key+")\n    "+first) {
			t.Errorf("help has no %s", m.key)
		}
	}
}
