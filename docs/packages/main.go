// Command packages writes the table of packages in docs/architecture.md: of each its comment's first sentence, and what
// it imports of ours.
//
//	go generate ./docs/packages
//
// The table has the packages of the commands below cmd, and those that these import, for linux/amd64.
package main

//go:generate go run . -file ../architecture.md

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

const (
	begin = "<!-- packages: written by go generate ./docs/packages -->\n"
	end   = "<!-- end of packages -->\n"
	// mostWords is how long a cell may be: of a longer sentence what stands before its colon or semicolon is taken.
	mostWords = 25
)

func main() {
	file := flag.String("file", "docs/architecture.md", "document that has the table")
	flag.Parse()
	if err := run(*file); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	packages, err := listPackages()
	if err != nil {
		return err
	}
	after, err := replaceTable(string(text), printTable(packages))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(after), 0o644)
}

// sourcePackage is what go list says of a package of ours.
type sourcePackage struct {
	ImportPath, Name, Doc string
	Imports               []string
	Module                *struct{ Path string }
	Standard              bool
}

// listPackages lists the product's packages, whose paths are below the module's; what they import comes before them.
func listPackages() ([]sourcePackage, error) {
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,Doc,Imports,Module,Standard", "github.com/feedwater-io/feedwater/cmd/...")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var ours []sourcePackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p sourcePackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return ours, nil
		} else if err != nil {
			return nil, err
		}
		if p.Module == nil || !strings.HasPrefix(p.ImportPath, module) {
			continue
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		p.Imports = ownImports(p.Imports)
		ours = append(ours, p)
	}
}

const module = "github.com/feedwater-io/feedwater/"

func ownImports(imports []string) []string {
	var own []string
	for _, i := range imports {
		if name, ok := strings.CutPrefix(i, module); ok {
			own = append(own, name)
		}
	}
	return own
}

func printTable(packages []sourcePackage) string {
	var b strings.Builder
	b.WriteString("| package | what it is | imports of ours |\n|---|---|---|\n")
	for _, p := range packages {
		imports := strings.Join(foldFolders(p.Imports), ", ")
		if imports == "" {
			imports = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.ImportPath, strings.ReplaceAll(describe(&p), "|", `\|`), imports)
	}
	return b.String()
}

// describe is the first sentence of a package's comment without its first two words, as "Package batch" or "Command
// feedwater".
func describe(p *sourcePackage) string {
	text := strings.Join(strings.Fields(p.Doc), " ")
	if _, rest, ok := strings.Cut(text, " "+path.Base(p.ImportPath)+" "); ok && p.Name == path.Base(p.ImportPath) || p.Name == "main" {
		text = rest
	} else if _, rest, ok := strings.Cut(text, " "+p.Name+" "); ok {
		text = rest
	}
	text = strings.TrimSuffix(text, ".")
	if sentence, _, ok := strings.Cut(text, ". "); ok {
		text = sentence
	}
	if len(strings.Fields(text)) > mostWords {
		if at := strings.IndexAny(text, ":;"); at > 0 {
			text = text[:at]
		}
	}
	return text
}

// foldFolders writes packages of one folder as one word: server/{demand,runs}.
func foldFolders(imports []string) []string {
	slices.Sort(imports)
	var words []string
	for i := 0; i < len(imports); {
		folder, n := path.Dir(imports[i]), 1
		for i+n < len(imports) && folder != "." && path.Dir(imports[i+n]) == folder {
			n++
		}
		word := imports[i]
		if n > 1 {
			var names []string
			for _, name := range imports[i : i+n] {
				names = append(names, path.Base(name))
			}
			word = folder + "/{" + strings.Join(names, ",") + "}"
		}
		words = append(words, word)
		i += n
	}
	return words
}

// replaceTable puts a table between the marks.
func replaceTable(text, table string) (string, error) {
	head, rest, ok := strings.Cut(text, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", errors.New("the marks of the table are not there")
	}
	return head + begin + "\n" + table + "\n" + end + tail, nil
}
