package main

import (
	"os"
	"strings"
	"testing"
)

// The table of docs/architecture.md is that of the packages that there are, in the words of their comments.
func TestTableIsCurrent(t *testing.T) {
	text, err := os.ReadFile("../architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 40 {
		t.Fatalf("%d packages are listed", len(packages))
	}
	want, err := replaceTable(string(text), printTable(packages))
	if err != nil {
		t.Fatal(err)
	}
	if want != string(text) {
		t.Error("the table is out of date: go generate ./docs/packages, and commit")
	}
}

// Each package says what it is in one sentence that a cell can hold.
func TestPackagesAreDescribed(t *testing.T) {
	packages, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		if words := len(strings.Fields(describe(&p))); words == 0 || words > mostWords {
			t.Errorf("%s: its comment begins with a sentence of %d words; at most %d", p.ImportPath, words, mostWords)
		}
	}
}

func TestReplaceTable(t *testing.T) {
	got, err := replaceTable("before\n"+begin+"old\n"+end+"after\n", "| new |\n")
	if want := "before\n" + begin + "\n| new |\n\n" + end + "after\n"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if _, err := replaceTable("a document without marks", ""); err == nil {
		t.Error("a document without marks is taken")
	}
}

func TestFoldFolders(t *testing.T) {
	got := strings.Join(foldFolders([]string{"server/runs", "batch", "server", "server/demand", "watch/pulse"}), " ")
	if want := "batch server server/{demand,runs} watch/pulse"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
