package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// scope says what is measured at all.
const scope = `Measured are the commands below cmd and every package of the module that they import, for linux/amd64
without cgo, and the modules below python/feedwater. Left out are tests, packages that only tests and
measurements use, and generated files. "client", "server" and "transforms" are those folders with all
below them; transforms is pipeline/augment, or pipeline/transform, pipeline/resize and pipeline/raster.`

// measure is one row of the table.
type measure struct {
	key, title, help string
	values           []value
}

// value is one number of a row.
type value struct {
	name  string // "" where the row has only one
	start string // at commit 4a99f83, where the targets were set
	reach string // where it is meant to go
	// read returns the number as it is printed, and what it counts, one line each.
	read func(*tree) (string, []string)
}

// part is a part of the tree.
type part struct {
	name   string
	python bool
	paths  []string
}

var (
	pythonPart     = part{"Python", true, []string{"python/feedwater"}}
	transformsPart = part{"transforms", false, []string{
		"pipeline/augment", "pipeline/transform", "pipeline/resize", "pipeline/raster",
	}}
	clientPart = part{"client", false, []string{"client"}}
	serverPart = part{"server", false, []string{"server"}}
)

func (p part) folders(t *tree) []*folder {
	var found []*folder
	for _, f := range t.folders {
		for _, path := range p.paths {
			if f.python == p.python && (f.path == path || strings.HasPrefix(f.path, path+"/")) {
				found = append(found, f)
			}
		}
	}
	return found
}

var measures = []measure{
	{"files", "files in the largest folder", `Source files of the folder that has the most, of each part.`, []value{
		{"Python", "71", "25", filesOf(pythonPart)},
		{"transforms", "70", "45", filesOf(transformsPart)},
		{"client", "40", "18", filesOf(clientPart)},
		{"server", "39", "18", filesOf(serverPart)},
	}},
	{"up", "imports between files that run up", `
An arrow leads from one file of a package to another if it uses a function, type, method, field
or value that is declared there; in Python, from one module of a folder to another that it imports
when it runs. Files are put in an order in which as few arrows as can be found lead to an earlier
file: these run up. Without them the files stand in floors. A part's number is the sum over its
packages.`, []value{
		{"client", "55 of 243", "15", upOf(clientPart)},
		{"server", "23 of 170", "8", upOf(serverPart)},
		{"transforms", "52 of 395", "15", upOf(transformsPart)},
		{"Python", "2 of 300", "0", upOf(pythonPart)},
	}},
	{"methods", "methods of the largest type", `
Methods that are declared for the type itself, in all files. Those of embedded types or base
classes do not count.`, []value{
		{"Go", "100", "35", methodsOf(false)},
		{"Python", "48", "", methodsOf(true)},
	}},
	{"one-word", "one-word function names", `
Functions and methods, in Python inner ones too, whose name is one word. A capital behind a small
letter, or an underscore, begins a word; capitals in a row are one. Names that Python gives
(__init__) are left out.`, []value{
		{"Go", "71 %", "40 %", oneWord(false)},
		{"Python", "77 %", "40 %", oneWord(true)},
	}},
	{"laws", "places that state", `
a want: types that declare, and literals that copy, three or more of dst, grow, image, step, due,
begun, done.
batch layout: functions that round a size up to a multiple of a constant with "align" in its name.
epoch order: functions that divide by the number of ranks, rounding up.
verdict thresholds: folders with a function named judge in which a loss, stall, wait or idle is
compared with a constant between 0 and 1.
cost averages: functions that add to a moving average named cost or lately.`, []value{
		{"a want", "10", "3", placesOf(lawWant)},
		{"batch layout", "6", "1", placesOf(lawLayout)},
		{"epoch order", "5", "2", placesOf(lawOrder)},
		{"verdict thresholds", "2", "1", thresholds},
		{"cost averages", "4", "2", placesOf(lawCost)},
	}},
	{"long", "functions over 60 lines", `From the line of func or def to the last one.`, []value{
		{"", "1", "0", longFunctions},
	}},
	{"purpose", "packages of no single purpose", `
Go packages and Python packages that have no comment, or the word "and" in it before the first
punctuation mark.`, []value{
		{"", "6 of 41", "0", vaguePackages},
	}},
	{"words", "words", `As wc -w counts them.`, []value{
		{"README", "3120", "700", wordsOf("README.md")},
		{"CHANGELOG", "9895", "600", wordsOf("CHANGELOG.md")},
	}},
	{"api", "public names", `
Python: names of __all__ in modules without an underscore. Wire: fields, values of enums and calls
of the proto file, with numbers and types. Behind the number stands a digest of the list.`, []value{
		{"Python", "124 (32659e)", "unchanged", publicPython},
		{"wire", "234 (fb4dad)", "unchanged", publicWire},
	}},
}

func filesOf(p part) func(*tree) (string, []string) {
	return func(t *tree) (string, []string) {
		most, lines := 0, []string(nil)
		for _, f := range p.folders(t) {
			most = max(most, len(f.files))
			lines = append(lines, fmt.Sprintf("%s\t%d", f.path, len(f.files)))
		}
		return fmt.Sprint(most), lines
	}
}

func upOf(p part) func(*tree) (string, []string) {
	return func(t *tree) (string, []string) {
		all, lines := 0, []string(nil)
		for _, f := range p.folders(t) {
			all += len(f.arrows)
			for _, a := range arrowsUp(f.arrows) {
				lines = append(lines, fmt.Sprintf("%s\t%s → %s\t%s", f.path, a.from, a.to, strings.Join(f.names[a], " ")))
			}
		}
		return fmt.Sprintf("%d of %d", len(lines), all), lines
	}
}

func methodsOf(python bool) func(*tree) (string, []string) {
	return func(t *tree) (string, []string) {
		var types []typeFact
		for _, f := range t.folders {
			if f.python == python {
				types = append(types, f.types...)
			}
		}
		slices.SortStableFunc(types, func(a, b typeFact) int { return cmp.Compare(b.methods, a.methods) })
		var lines []string
		for _, d := range types[:min(10, len(types))] {
			lines = append(lines, fmt.Sprintf("%s\t%s\t%d", d.place, d.name, d.methods))
		}
		if len(types) == 0 {
			return "0", nil
		}
		return fmt.Sprint(types[0].methods), lines
	}
}

func oneWord(python bool) func(*tree) (string, []string) {
	return func(t *tree) (string, []string) {
		all, lines := 0, []string(nil)
		for _, f := range t.folders {
			if f.python != python {
				continue
			}
			all += len(f.functions)
			for _, d := range f.functions {
				if len(splitWords(d.name)) <= 1 {
					lines = append(lines, d.place+"\t"+d.name)
				}
			}
		}
		return fmt.Sprintf("%.0f %%", 100*float64(len(lines))/float64(max(all, 1))), lines
	}
}

func placesOf(law string) func(*tree) (string, []string) {
	return func(t *tree) (string, []string) {
		var lines []string
		for _, f := range t.folders {
			for _, p := range f.places {
				if p.law == law {
					lines = append(lines, p.where)
				}
			}
		}
		return fmt.Sprint(len(lines)), lines
	}
}

func thresholds(t *tree) (string, []string) {
	folders, lines := 0, []string(nil)
	for _, f := range t.folders {
		judges := slices.ContainsFunc(f.functions, func(d function) bool { return strings.EqualFold(d.name, "judge") })
		before := len(lines)
		for _, p := range f.places {
			if judges && p.law == lawThreshold {
				lines = append(lines, p.where)
			}
		}
		if len(lines) > before {
			folders++
		}
	}
	return fmt.Sprint(folders), lines
}

func longFunctions(t *tree) (string, []string) {
	var lines []string
	for _, f := range t.folders {
		for _, d := range f.functions {
			if d.lines > 60 {
				lines = append(lines, fmt.Sprintf("%s\t%s\t%d", d.place, d.name, d.lines))
			}
		}
	}
	return fmt.Sprint(len(lines)), lines
}

func vaguePackages(t *tree) (string, []string) {
	all, lines := 0, []string(nil)
	for _, f := range t.folders {
		if !f.isPackage {
			continue
		}
		all++
		if s := mainClause(f.doc); s == "" || hasWord(s, "and") {
			lines = append(lines, f.path+"\t"+s)
		}
	}
	return fmt.Sprintf("%d of %d", len(lines), all), lines
}

func wordsOf(name string) func(*tree) (string, []string) {
	return func(t *tree) (string, []string) { return fmt.Sprint(t.words[name]), nil }
}

func publicPython(t *tree) (string, []string) {
	var names []string
	for _, f := range t.folders {
		names = append(names, f.public...)
	}
	return numbered(names)
}

func publicWire(t *tree) (string, []string) { return numbered(slices.Clone(t.wire)) }

func numbered(names []string) (string, []string) {
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return fmt.Sprintf("%d (%x)", len(names), sum[:3]), names
}
