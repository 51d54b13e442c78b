package main

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every module that the linker put into the program has a text, and Go has.
func TestNoticesOfTheProgram(t *testing.T) {
	dir := t.TempDir()
	program, file := filepath.Join(dir, "feedwater"), filepath.Join(dir, "NOTICES.txt")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/feedwater").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil || len(info.Deps) < 40 {
		t.Fatal(err, len(info.Deps))
	}
	if err := run(file, "../../cmd/feedwater"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, d := range info.Deps {
		name := d.Path + " " + d.Version
		listed[name] = true
		if !strings.Contains(string(text), "\n    "+name+"\n") || !strings.Contains(string(text), "\n"+name+": ") {
			t.Errorf("no text of %s", name)
		}
	}
	names := 0
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "    "); ok && strings.Contains(name, "/") && strings.Count(name, " ") == 1 && strings.Contains(name, " v") {
			if names++; !listed[strings.TrimSpace(name)] {
				t.Errorf("%s is not linked", name)
			}
		}
		if strings.Contains(line, os.Getenv("HOME")) && os.Getenv("HOME") != "/" && os.Getenv("HOME") != "" {
			t.Errorf("a path of this machine: %s", line)
		}
	}
	if names != len(info.Deps) {
		t.Errorf("%d modules are listed, %d are linked", names, len(info.Deps))
	}
	for _, says := range []string{"The Go programming language, go1.", "Apache License", "Redistribution and use in source and binary forms", "Permission is hereby granted"} {
		if !strings.Contains(string(text), says) {
			t.Errorf("no %q", says)
		}
	}
}

// Texts of a package's own folder count, code that is called like one does not, and a module without any is an error.
func TestTexts(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	m := module{name: "example.org/m v1", dir: dir, packages: []string{inner}}
	for _, name := range []string{"license.go", "licensed.txt", "README", "a/b/LICENSE-MIT", "LICENCE", "NOTICE.txt", "a/COPYING"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := m.texts(); err != nil || len(found) != 4 {
		t.Errorf("%q, %v", found, err)
	}
	m.dir, m.packages = inner, []string{t.TempDir()}
	if found, err := m.texts(); err == nil || !strings.Contains(err.Error(), "example.org/m v1 has no licence") {
		t.Errorf("%q, %v", found, err)
	}
}
