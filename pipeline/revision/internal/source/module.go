package source

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// modules is what go.mod and go.sum say.
type modules struct {
	language string   // the version of Go
	sum      []string // lines
}

func readModules(dir string) (*modules, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return nil, err
	}
	m := &modules{sum: strings.Split(string(sum), "\n")}
	for _, line := range strings.Split(string(mod), "\n") {
		if f := strings.Fields(line); len(f) == 2 && (f[0] == "go" || f[0] == "toolchain") {
			m.language += line + "\n"
		}
	}
	return m, nil
}

// sums are the lines of go.sum for modules, each "path version".
func (m *modules) sums(needed []string) ([]string, error) {
	var lines []string
	for _, module := range needed {
		i := slices.IndexFunc(m.sum, func(line string) bool { return strings.HasPrefix(line, module+" ") })
		if i < 0 {
			return nil, fmt.Errorf("go.sum has no line for %s", module)
		}
		lines = append(lines, m.sum[i])
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// needed are the modules of packages, and of all that these import, but for the module itself.
func (p *program) needed(packages map[string]bool) (modules []string) {
	seen := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		l := p.listed[path]
		if seen[path] || l == nil {
			return
		}
		seen[path] = true
		if l.Module != nil && !l.Module.Main {
			modules = append(modules, l.Module.Path+" "+l.Module.Version)
		}
		for _, i := range l.Imports {
			visit(i)
		}
	}
	for path := range packages {
		visit(path)
	}
	return modules
}
