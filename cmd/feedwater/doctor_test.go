package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakePython is a program that says whether it has the package, and what it was run with.
func fakePython(t *testing.T, dir, name string, has bool) string {
	t.Helper()
	check := `echo "ModuleNotFoundError: No module named 'feedwater'" >&2; exit 1`
	if has {
		check = "exit 0"
	}
	path := filepath.Join(dir, name)
	script := "#!/bin/sh\nif [ \"$1\" = -c ]; then " + check + "; fi\necho \"" + name + " $*\"\nexit 3\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	return path
}

func TestDoctorHandsOver(t *testing.T) {
	dir := t.TempDir()
	fakePython(t, dir, "python3", true)
	c := program(t, "doctor", "--json", "-", "--", "bash", "train.sh")
	c.Env = append(c.Env, "PATH="+dir, "FEEDWATER_PYTHON=")
	out, err := c.Output()
	if got := strings.TrimSpace(string(out)); got != "python3 -m feedwater.doctor --json - -- bash train.sh" {
		t.Errorf("ran %q", got)
	}
	if c.ProcessState.ExitCode() != 3 {
		t.Errorf("exit code %d, %v: the doctor's own is lost", c.ProcessState.ExitCode(), err)
	}
}

func TestDoctorPython(t *testing.T) {
	dir := t.TempDir()
	without := fakePython(t, dir, "python3", false)
	with := fakePython(t, dir, "python", true)
	own := fakePython(t, t.TempDir(), "python3.12", true)
	t.Setenv("PATH", dir)
	for _, c := range []struct {
		named string
		args  []string
		want  string
		says  string
	}{
		{"", []string{"--", "bash"}, with, ""},
		{"", []string{"--", own, "train.py"}, own, ""},
		{own, []string{"--", "python", "train.py"}, own, ""},
		{without, []string{"--", "python"}, "", without + " (ModuleNotFoundError: No module named 'feedwater'); pip install feedwater there"},
		{"/no/such/python", []string{"--", "python"}, "", "there is no Python on PATH: name one by FEEDWATER_PYTHON"},
	} {
		t.Setenv("FEEDWATER_PYTHON", c.named)
		got, err := findPython(t.Context(), c.args)
		if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("FEEDWATER_PYTHON=%s %q: %s, %v", c.named, c.args, got, err)
		}
	}
}
