package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Name, Dir string
	GoFiles, SFiles       []string
	Imports               []string
	ImportMap             map[string]string
	Module                *struct {
		Path, Version string
		Main          bool
	}
}

// list asks the go command for packages and all that they import, which come first.
func list(dir string, v variant, patterns ...string) ([]*listed, error) {
	arguments := append([]string{
		"list", "-deps", "-tags=" + v.tags, "-json=ImportPath,Name,Dir,GoFiles,SFiles,Imports,ImportMap,Module",
	}, patterns...)
	run := exec.Command("go", arguments...)
	run.Dir = dir
	run.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+v.arch, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	var trouble bytes.Buffer
	run.Stderr = &trouble
	out, err := run.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, strings.TrimSpace(trouble.String()))
	}
	var all []*listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		l := new(listed)
		if err := d.Decode(l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
}
