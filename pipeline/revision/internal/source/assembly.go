package source

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// assembly is the text of a package's assembler files: for each symbol the blocks that define it, without comments and
// spaces.
type assembly struct {
	blocks map[string]string
	calls  map[string][]string // the symbols that a symbol's blocks name
}

var (
	symbol  = regexp.MustCompile(`([\pL_][\pL\pN_]*|)·([\pL\pN_]+)(?:<>)?|([\pL_][\pL\pN_]*)<>`)
	comment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	begins  = regexp.MustCompile(`^(TEXT|DATA|GLOBL)\b`)
)

// readAssembly reads a package's assembler files.
func readAssembly(dir string, files []string) (*assembly, error) {
	a := &assembly{blocks: map[string]string{}, calls: map[string][]string{}}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			return nil, err
		}
		a.read(comment.ReplaceAllString(string(text), ""))
	}
	return a, nil
}

// read splits a file into blocks. What stands before the first one, and all that the preprocessor is told, belongs to
// each of them.
func (a *assembly) read(text string) {
	lines := strings.Split(text, "\n")
	head := "" // for all
	for _, line := range lines {
		if line = strings.Join(strings.Fields(line), " "); strings.HasPrefix(line, "#") || strings.HasSuffix(line, "\\") {
			head += line + "\n"
		}
	}
	now := ""
	for _, line := range lines {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if begins.MatchString(line) {
			now = symbolOf(symbol.FindStringSubmatch(line))
			if a.blocks[now] == "" {
				a.blocks[now] = head
			}
		}
		if now == "" {
			continue
		}
		a.blocks[now] += line + "\n"
		for _, m := range symbol.FindAllStringSubmatch(line, -1) {
			if s := symbolOf(m); s != now {
				a.calls[now] = append(a.calls[now], s)
			}
		}
	}
}

func symbolOf(m []string) string {
	if len(m) == 0 {
		return "?"
	}
	return m[2] + m[3]
}

// text is all that a symbol needs of the files, and the names that these do not define: functions of the package.
func (a *assembly) text(name string) (text string, outside []string) {
	seen := map[string]bool{}
	todo := []string{name}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		if seen[s] {
			continue
		}
		seen[s] = true
		block, there := a.blocks[s]
		if !there && s != name {
			outside = append(outside, s)
		}
		text += block
		todo = append(todo, a.calls[s]...)
	}
	return text, outside
}
