// Command constants writes the Go constants that Python needs, too, as a Python module:
// python/feedwater/_common/constants.py. So each is stated once, in Go.
//
//	go generate ./python/constants
package main

//go:generate go run . -file ../feedwater/_common/constants.py -root ../..

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// sources are the files that have the constants, and the names of those that Python reads.
var sources = []struct {
	file  string
	names []string
}{
	{"batch/field.go", []string{"Align"}},
	{"watch/verdict/thresholds.go", []string{
		"FewSteps", "BoundShare", "CopyShare", "UnsteadyShare", "GainShare", "StragglerShare", "PrefetchShare",
	}},
}

func main() {
	file := flag.String("file", "python/feedwater/_common/constants.py", "module to write")
	root := flag.String("root", ".", "folder of the module of Go")
	flag.Parse()
	text, err := printModule(*root)
	if err == nil {
		err = os.WriteFile(*file, []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "constants:", err)
		os.Exit(1)
	}
}

// printModule is the Python module.
func printModule(root string) (string, error) {
	var b strings.Builder
	b.WriteString("\"\"\"Constants that Go states and Python needs, too: written by go generate ./python/constants.\"\"\"\n")
	for _, s := range sources {
		all, err := readConstants(filepath.Join(root, s.file))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n# %s\n", s.file)
		for _, c := range all {
			if slices.Contains(s.names, c.name) {
				b.WriteString(c.python())
			}
		}
	}
	return b.String(), nil
}

// constant is a number that a file declares.
type constant struct{ name, value, doc string }

// readConstants are the exported constants of a file that are numbers, in order.
func readConstants(file string) ([]constant, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var all []constant
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v, _ := spec.(*ast.ValueSpec)
			number, ok := v.Values[0].(*ast.BasicLit)
			if !ok || !v.Names[0].IsExported() {
				continue
			}
			doc := v.Doc.Text()
			if doc == "" {
				doc = g.Doc.Text()
			}
			all = append(all, constant{v.Names[0].Name, number.Value, doc})
		}
	}
	return all, nil
}

var inner = regexp.MustCompile(`([a-z])([A-Z])`)

// python is the constant and what it is, as Python writes them.
func (c *constant) python() string {
	doc := strings.Join(strings.Fields(strings.TrimPrefix(c.doc, c.name+" is ")), " ")
	doc = strings.ToUpper(doc[:1]) + doc[1:]
	return fmt.Sprintf("%s = %s\n%s", strings.ToUpper(inner.ReplaceAllString(c.name, "${1}_$2")), c.value, wrap(doc))
}

// pythonWidth is how long a line of Python may be.
const pythonWidth = 120

// wrap is a docstring of lines that are no longer than pythonWidth.
func wrap(text string) string {
	if len([]rune(text))+len(`""""""`) <= pythonWidth {
		return `"""` + text + "\"\"\"\n"
	}
	var b strings.Builder
	line := `"""`
	for _, word := range strings.Fields(text) {
		if len([]rune(line))+1+len([]rune(word)) > pythonWidth {
			b.WriteString(line + "\n")
			line = ""
		}
		if line != "" && line != `"""` {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n\"\"\"\n")
	return b.String()
}
