// Command units holds the table of package revision against the source that it is of.
//
//	units [flags] check           says which units' source is another than the table's; status 1 where there is one
//	units [flags] raise UNIT…     notes that these units make other bytes than before: a revision more, and the digest of what is there
//	units [flags] same [UNIT…]    notes the digest of units that make the same bytes as the commit that the table is of: it runs a corpus in both
//	units [flags] show [UNIT…]    lists what is in units, and what led to it
//
// It reads and writes the module that it runs in, and is no part of the product.
package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/revision"
	"github.com/feedwater-io/feedwater/pipeline/revision/internal/source"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "units:", err)
		os.Exit(1)
	}
}

// tree is a module's source and its table.
type tree struct {
	dir    string
	python string
	path   string // of the table
	table  map[string]revision.Unit
	found  map[string]source.Unit
}

func run(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("units", flag.ContinueOnError)
	dir := flags.String("dir", ".", "folder of the module")
	python := flags.String("python", interpreter(), "Python interpreter")
	base := flags.String("base", "", "commit that the table is of; by default the last that changed it")
	seed := flags.Uint64("seed", 1, "of the corpus")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	root, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	t, err := read(root, *python)
	if err != nil {
		return err
	}
	switch command, names := flags.Arg(0), flags.Args(); command {
	case "check":
		return t.check()
	case "raise":
		return t.raise(names[1:], out)
	case "same":
		return t.same(names[1:], *base, *seed, out)
	case "show":
		return t.show(names[1:], out)
	default:
		return fmt.Errorf("%q is none of check, raise, same, show", command)
	}
}

func interpreter() string {
	if p := os.Getenv("FEEDWATER_PYTHON"); p != "" {
		return p
	}
	return "python3"
}

func read(dir, python string) (*tree, error) {
	t := &tree{dir: dir, python: python, path: filepath.Join(dir, "pipeline", "revision", "table.txt")}
	text, err := os.ReadFile(t.path)
	if err != nil {
		return nil, err
	}
	if t.table, err = revision.Parse(string(text)); err != nil {
		return nil, err
	}
	t.found, err = source.Digest(dir, python)
	return t, err
}

// changed are the units whose line is not that of the source, sorted: those that are new and those that are gone too.
func (t *tree) changed() []string {
	var names []string
	for name, u := range t.found {
		if line := t.table[name]; line.Digest != u.Digest || !slices.Equal(line.Uses, u.Uses) {
			names = append(names, name)
		}
	}
	for name, line := range t.table {
		if _, there := t.found[name]; !there && line.Digest != gone {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// gone is the digest of a unit that the code has no more. Its line stays, so that its revisions are never used again.
const gone = "-"

// check says what is to be done about each unit that has changed.
func (t *tree) check() error {
	names := t.changed()
	if len(names) == 0 {
		return nil
	}
	var said []string
	for _, name := range names {
		line, known := t.table[name]
		_, there := t.found[name]
		switch {
		case !known:
			said = append(said, fmt.Sprintf("%s is new: make raise UNITS=%s", name, name))
		case !there:
			said = append(said, fmt.Sprintf("%s is gone: make raise UNITS=%s", name, name))
		default:
			said = append(said, fmt.Sprintf("%s is not the source of revision %d: make same if it makes the same bytes, else make raise UNITS=%s",
				name, line.Revision, name))
		}
	}
	return fmt.Errorf("docs/revisions.md: %d units have changed\n%s", len(names), strings.Join(said, "\n"))
}

// raise notes that units make other bytes.
func (t *tree) raise(names []string, out io.Writer) error {
	if len(names) == 0 {
		return fmt.Errorf("raise which? Changed: %s", strings.Join(t.changed(), ", "))
	}
	for _, name := range names {
		line, known := t.table[name]
		u, there := t.found[name]
		switch {
		case !known && !there:
			return fmt.Errorf("there is no unit %q", name)
		case !there:
			line.Digest = gone
		default:
			line = revision.Unit{Revision: line.Revision + 1, Digest: u.Digest, Uses: u.Uses}
		}
		t.table[name] = line
		fmt.Fprintf(out, "%s: revision %d\n", name, line.Revision)
	}
	return t.write()
}

func (t *tree) write() error {
	return os.WriteFile(t.path, []byte(revision.Format(t.table)), 0o644) //nolint:gosec // as all source
}

// show lists what is in units.
func (t *tree) show(names []string, out io.Writer) error {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(t.found))
	}
	for _, name := range names {
		u, there := t.found[name]
		if !there {
			return fmt.Errorf("there is no unit %q", name)
		}
		fmt.Fprintf(out, "%s, revision %d, digest %s, uses [%s]\n", name, t.table[name].Revision, u.Digest, strings.Join(u.Uses, " "))
		for _, d := range u.Declarations {
			fmt.Fprintln(out, "\t"+d)
		}
	}
	return nil
}
