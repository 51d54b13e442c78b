package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const repository = "../.."

// texts are all that people may read, by file: the string literals of Go sources, and other files whole.
func texts(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	kinds := []string{".go", ".py", ".md", ".js", ".html", ".yaml", ".json", ".proto", ".sh"}
	for _, top := range []string{"client", "cmd", "control", "deploy", "docs", "examples", "pipeline", "proto", "python/feedwater", "server", "span", "watch"} {
		err := filepath.WalkDir(filepath.Join(repository, top), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "mutants" || d.Name() == "__pycache__"):
				return filepath.SkipDir
			case d.IsDir() || !slices.Contains(kinds, filepath.Ext(path)) || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			if err == nil {
				all[path] = []string{string(text)}
				if filepath.Ext(path) == ".go" {
					all[path] = literals(t, path, text)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"README.md", "python/README.md"} {
		text, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = []string{string(text)}
	}
	return all
}

func literals(t *testing.T, path string, source []byte) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil {
				all = append(all, s)
			}
		}
		return true
	})
	return all
}

// commandInText matches the name of a command where one stands: in backticks, at the begin of a line, behind a colon, a prompt or another command; what
// follows are its arguments.
var commandInText = regexp.MustCompile("(?m)(^[ \\t]*|`|: |\\$ |&& |\"|')(?:bin/)?feedwater ([a-z][a-z-]*)([^\n`|&#\"']*)")

// things are what follows the name where no command is meant: nodes of ours, a column of a table, and names that go into digests.
var things = []string{"nodes", "all", "help", "class", "draw", "sampler", "snapshot"}

// aFlag matches a flag among words.
var aFlag = regexp.MustCompile(`(?:^|[ (\[])--([a-z][a-z0-9-]*)`)

// checkAdvice says what of a text names a command or a flag that there is not.
func checkAdvice(root *cobra.Command, text string) (wrong []string) {
	for _, m := range commandInText.FindAllStringSubmatch(text, -1) {
		c, _, err := root.Find([]string{m[2]})
		if err != nil || c == root {
			if !slices.Contains(things, m[2]) || m[1] == "`" {
				wrong = append(wrong, "feedwater "+m[2])
			}
			continue
		}
		arguments, _, _ := strings.Cut(m[3], " -- ")
		for _, f := range aFlag.FindAllStringSubmatch(arguments, -1) {
			if c.Flags().Lookup(f[1]) == nil && f[1] != "help" {
				wrong = append(wrong, "feedwater "+m[2]+" --"+f[1])
			}
		}
	}
	return wrong
}

// treeWithDoctor is the command tree. The doctor's flags are parsed by Python: they are read off its source.
func treeWithDoctor(t *testing.T) *cobra.Command {
	t.Helper()
	root := newRoot()
	source, err := os.ReadFile(filepath.Join(repository, "python/feedwater/doctor/__main__.py"))
	if err != nil {
		t.Fatal(err)
	}
	doctor, _, err := root.Find([]string{"doctor"})
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"--([a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(found) < 4 {
		t.Fatalf("the doctor has the flags %q", found)
	}
	for _, m := range found {
		if doctor.Flags().Lookup(m[1]) == nil {
			doctor.Flags().String(m[1], "", "")
		}
	}
	agent, _, _ := root.Find([]string{agentCommand})
	agent.Flags().AddFlagSet((&agentOptions{}).flagSet())
	return root
}

// Whatever advice, help or page names a command of ours names one that there is, with flags that it has.
func TestAdviceNamesWhatThereIs(t *testing.T) {
	root := treeWithDoctor(t)
	for text, want := range map[string]int{
		"check the network to the nodes: feedwater bench --nodes":          1,
		"look at `feedwater tops`":                                         1,
		"start a node: feedwater serve --data …":                           0,
		"start a node: feedwater serve --datas a=/b --listen :1":           1,
		"  feedwater top --once --json | jq .":                             0,
		"`feedwater doctor --try num_workers=4 -- python t.py --epochs 3`": 0,
		"`feedwater nodes`":                                                1,
		"feedwater nodes (data made elsewhere), at least 2":                0,
	} {
		if got := checkAdvice(root, text); len(got) != want {
			t.Errorf("%s: %q", text, got)
		}
	}
	commands := 0
	for path, all := range texts(t) {
		for _, text := range all {
			commands += len(commandInText.FindAllString(text, -1))
			for _, wrong := range checkAdvice(root, text) {
				t.Errorf("%s names %s, which there is not", path, wrong)
			}
		}
	}
	if commands < 60 {
		t.Errorf("%d commands were found in all texts", commands)
	}
}

// Flags that stand alone, as in "give --tls-ca", are some command's.
func TestFlagsInMessagesExist(t *testing.T) {
	known := map[string]bool{"help": true, "version": true}
	for _, flags := range commandFlags() {
		for _, name := range append(settableFlags(flags), "config") {
			known[name] = true
		}
	}
	for _, c := range treeWithDoctor(t).Commands() {
		for _, f := range settableFlags(c.Flags()) {
			known[f] = true
		}
	}
	foreign := []string{"nproc-per-node", "sparse"} // of torchrun in an example, of GNU tar
	seen := 0
	for path, all := range texts(t) {
		if filepath.Ext(path) != ".go" || strings.Contains(path, "/internal/") || strings.Contains(path, "feedwater-nvml") {
			continue
		}
		for _, text := range all {
			for _, m := range aFlag.FindAllStringSubmatch(text, -1) {
				if seen++; !known[m[1]] && !slices.Contains(foreign, m[1]) {
					t.Errorf("%s names --%s, which no command has: %q", path, m[1], text)
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("%d flags were found in all messages", seen)
	}
}

// Functions of the package that advice tells people to call can be called.
func TestFunctionsInAdviceExist(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(repository, "python/feedwater/__init__.py"))
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\bfeedwater\.([a-z_]+)\(`)
	seen := 0
	for path, all := range texts(t) {
		for _, text := range all {
			for _, m := range call.FindAllStringSubmatch(text, -1) {
				if seen++; !strings.Contains(string(source), `"`+m[1]+`"`) {
					t.Errorf("%s names feedwater.%s(), which the package does not have", path, m[1])
				}
			}
		}
	}
	if seen < 3 {
		t.Errorf("%d calls were found", seen)
	}
}
