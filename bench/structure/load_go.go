package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// listed is what go list says of a package.
type listed struct {
	Dir, ImportPath, Name, Export string
	GoFiles, IgnoredGoFiles       []string
	Module                        *struct{ Path, Dir string }
	Standard                      bool
}

// listPackages returns the commands below cmd and all that they import, with what the compiler exports of each.
func listPackages(root string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-export", "-deps",
		"-json=Dir,ImportPath,Name,Export,GoFiles,IgnoredGoFiles,Module,Standard", "./cmd/...")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// loadGo reads the product's own packages.
func loadGo(root string) ([]*folder, error) {
	all, err := listPackages(root)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	set := token.NewFileSet()
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	imports := importer.ForCompiler(set, "gc", open)
	var folders []*folder
	for _, p := range all {
		if p.Standard || p.Module == nil || !inside(root, p.Dir) {
			continue
		}
		f, err := loadPackage(set, imports, root, p)
		if err != nil {
			return nil, err
		}
		if len(f.files) > 0 {
			folders = append(folders, f)
		}
	}
	slices.SortFunc(folders, func(a, b *folder) int { return strings.Compare(a.path, b.path) })
	return folders, nil
}

func inside(root, dir string) bool {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return false
	}
	relative, err := filepath.Rel(absolute, dir)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}

// loadPackage parses a package's files, and checks the types of those that this platform builds.
func loadPackage(set *token.FileSet, imports types.Importer, root string, p listed) (*folder, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Rel(absolute, p.Dir)
	if err != nil {
		return nil, err
	}
	f := &folder{path: filepath.ToSlash(path), isPackage: true}
	built, err := parseFiles(set, p, p.GoFiles)
	if err != nil {
		return nil, err
	}
	others, err := parseFiles(set, p, p.IgnoredGoFiles)
	if err != nil {
		return nil, err
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	own, err := (&types.Config{Importer: imports}).Check(p.ImportPath, set, built, info)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
	}
	r := &goReader{set: set, info: info, own: own, folder: f, methods: map[string]int{}}
	for _, file := range append(built, others...) {
		if !ast.IsGenerated(file) {
			r.readFile(file)
		}
	}
	r.readArrows(built)
	r.readMethods()
	return f, nil
}

// parseFiles leaves out tests, and programs that generate files of the package.
func parseFiles(set *token.FileSet, p listed, names []string) ([]*ast.File, error) {
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if file.Name.Name == p.Name {
			files = append(files, file)
		}
	}
	return files, nil
}
