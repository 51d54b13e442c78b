package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// loadTree reads the checkout below root. It writes nothing there.
func loadTree(root, python string) (*tree, error) {
	t := &tree{words: map[string]int{}}
	goFolders, err := loadGo(root)
	if err != nil {
		return nil, err
	}
	pyFolders, err := loadPython(root, python)
	if err != nil {
		return nil, err
	}
	t.folders = slices.Concat(goFolders, pyFolders)
	for _, name := range []string{"README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		t.words[name] = len(strings.Fields(string(text)))
	}
	t.wire, err = readWire(filepath.Join(root, "proto", "feedwater", "v1", "feedwater.proto"))
	return t, err
}

var (
	messageLine = regexp.MustCompile(`^\s*(?:message|enum|service) (\w+) \{`)
	fieldLine   = regexp.MustCompile(`^\s*((?:repeated |optional )?[\w.<>, ]*?)\s*(\w+) = (\d+)(?: \[.*\])?;`)
	callLine    = regexp.MustCompile(`^\s*rpc (.*?)(?: \{\}|;)`)
)

// readWire returns what a proto file puts on the wire: fields, values of enums, calls.
func readWire(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var names []string
	message := ""
	for s := bufio.NewScanner(f); s.Scan(); {
		line, _, _ := strings.Cut(s.Text(), "//")
		if m := messageLine.FindStringSubmatch(line); m != nil {
			message = m[1]
		}
		if m := fieldLine.FindStringSubmatch(line); m != nil {
			names = append(names, strings.TrimSpace(fmt.Sprintf("%s.%s = %s %s", message, m[2], m[3], m[1])))
		}
		if m := callLine.FindStringSubmatch(line); m != nil {
			names = append(names, message+": "+m[1])
		}
	}
	return names, nil
}
