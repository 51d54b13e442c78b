package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed modules.py
var modulesScript string

// loadPython reads the modules below python/feedwater, by Python's own parser.
func loadPython(root, python string) ([]*folder, error) {
	cmd := exec.Command(python, "-I", "-c", modulesScript, filepath.Join(root, "python", "feedwater"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", python, err)
	}
	var facts []pythonFolder
	if err := json.Unmarshal(out.Bytes(), &facts); err != nil {
		return nil, err
	}
	folders := make([]*folder, 0, len(facts))
	for _, p := range facts {
		folders = append(folders, p.folder())
	}
	return folders, nil
}

// pythonFolder is what modules.py prints of one folder.
type pythonFolder struct {
	Path      string   `json:"path"`
	Doc       string   `json:"doc"`
	IsPackage bool     `json:"is_package"`
	Files     []string `json:"files"`
	Functions []struct {
		Name  string `json:"name"`
		Lines int    `json:"lines"`
		Place string `json:"place"`
	} `json:"functions"`
	Classes []struct {
		Name    string `json:"name"`
		Methods int    `json:"methods"`
		Place   string `json:"place"`
	} `json:"classes"`
	Arrows [][2]string `json:"arrows"`
	Places [][2]string `json:"places"`
	Public []string    `json:"public"`
}

func (p *pythonFolder) folder() *folder {
	f := &folder{path: p.Path, python: true, doc: p.Doc, isPackage: p.IsPackage, files: p.Files, public: p.Public}
	for _, d := range p.Functions {
		f.functions = append(f.functions, function{d.Name, d.Lines, d.Place})
	}
	for _, c := range p.Classes {
		f.types = append(f.types, typeFact{c.Name, c.Methods, c.Place})
	}
	for _, a := range p.Arrows {
		f.arrows = append(f.arrows, arrow{a[0], a[1]})
	}
	for _, l := range p.Places {
		f.places = append(f.places, place{l[0], l[1]})
	}
	return f
}
