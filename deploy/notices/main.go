// Command notices writes the licence texts of all that is linked into a program, as those licences ask of whoever
// passes the program on:
//
//	go run ./deploy/notices FILE PACKAGE
//
// It reads what the go command says of the package's dependencies, and takes the texts from their folders in the module
// cache: those in each linked package's folder and in all above it, up to the module's. A module without any is an
// error. Go's own licence comes first.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "notices: go run ./deploy/notices FILE PACKAGE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(file, program string) error {
	modules, err := linked(program)
	if err != nil {
		return err
	}
	text, err := notices(modules)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// module is one that is linked: its name and version, its folder, and the folders of its packages that are linked.
type module struct {
	name, dir string
	packages  []string
}

// linked are the modules that a program is made of, Go's library first, without the program's own.
func linked(program string) ([]module, error) {
	list := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", program)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := map[string]module{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir      string
			Standard bool
			Module   *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		m := all[p.Module.Path]
		m.name, m.dir = p.Module.Path+" "+p.Module.Version, p.Module.Dir
		m.packages = append(m.packages, p.Dir)
		all[p.Module.Path] = m
	}
	root, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	dir, version, _ := strings.Cut(strings.TrimSpace(string(root)), "\n")
	modules := []module{{name: "The Go programming language, " + version, dir: dir, packages: []string{dir}}}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		modules = append(modules, all[path])
	}
	return modules, nil
}

// legal matches the names of files that licences ask to be passed on.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|authors)([-_.].*)?$`)

// source matches those that are code all the same.
var source = regexp.MustCompile(`\.(go|s|py|sh)$`)

// texts are the files of a module that are to be passed on.
func (m *module) texts() ([]string, error) {
	found := map[string]bool{}
	for _, dir := range m.packages {
		for {
			entries, err := os.ReadDir(dir)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if e.Type().IsRegular() && legal.MatchString(e.Name()) && !source.MatchString(e.Name()) {
					found[filepath.Join(dir, e.Name())] = true
				}
			}
			if dir == m.dir || len(dir) <= len(m.dir) {
				break
			}
			dir = filepath.Dir(dir)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no licence in %s", m.name, m.dir)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// notices is the whole text: who, and then each with its texts. Equal texts stand once.
func notices(modules []module) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("Feedwater's program holds code of the following projects, under their own licences, which are below.\n\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "    %s\n", m.name)
	}
	printed := map[string]string{}
	for _, m := range modules {
		files, err := m.texts()
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			place, err := filepath.Rel(m.dir, file)
			if err != nil {
				return nil, err
			}
			title := m.name + ": " + filepath.ToSlash(place)
			fmt.Fprintf(&b, "\n%s\n%s\n\n", strings.Repeat("=", 100), title)
			key := strings.Join(strings.Fields(string(text)), " ")
			if before := printed[key]; before != "" {
				fmt.Fprintf(&b, "The same text as of %s\n", before)
				continue
			}
			printed[key] = title
			b.Write(bytes.TrimRight(text, "\n"))
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}
