package source

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

// variant is a way to build the code. What one leaves out another has: assembly, and the Go that stands in for it.
type variant struct {
	name, arch, tags string
}

var variants = []variant{{"amd64", "amd64", ""}, {"arm64", "arm64", ""}, {"purego", "amd64", "purego"}}

// program is the source of a module as one variant builds it, without tests.
type program struct {
	module   string // its path
	fset     *token.FileSet
	listed   map[string]*listed
	packages map[string]*pkg // of the module, by path
	nodes    map[types.Object]*node
	names    map[*ast.Ident]types.Object // that identifiers stand for
	bodies   map[string]*assembly        // of packages by path
	initial  map[string][]*node          // by package: functions init, and values that nobody names
	writers  map[*node][]*node           // of a variable: the functions that change it
	within   map[*node]string            // roots of units within others
	// interfaces that values may be converted to.
	interfaces []*types.Interface
}

// pkg is a package of the module.
type pkg struct {
	path, name, dir string
	types           *types.Package
	info            *types.Info
	syntax          []*ast.File
}

// load reads the packages of the module in dir that patterns name, and of those that they import what these declare.
func load(dir string, v variant, patterns ...string) (*program, error) {
	all, err := list(dir, v, patterns...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.name, err)
	}
	p := &program{
		fset: token.NewFileSet(), listed: map[string]*listed{}, packages: map[string]*pkg{}, nodes: map[types.Object]*node{},
		names: map[*ast.Ident]types.Object{}, bodies: map[string]*assembly{}, initial: map[string][]*node{}, writers: map[*node][]*node{},
	}
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	for _, l := range all {
		p.listed[l.ImportPath] = l
		if l.Module != nil && l.Module.Main {
			p.module = l.Module.Path
		}
		if l.ImportPath == "unsafe" {
			continue
		}
		if checked[l.ImportPath], err = p.check(l, v, checked); err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return p, p.index()
}

// importer finds what a package imports among those that come before it.
type importer struct {
	names   map[string]string
	checked map[string]*types.Package
}

func (i importer) Import(path string) (*types.Package, error) {
	if actual, is := i.names[path]; is {
		path = actual
	}
	if q := i.checked[path]; q != nil {
		return q, nil
	}
	return nil, fmt.Errorf("%s is not listed", path)
}

// check parses a package and finds its types. Of functions of other modules the bodies are not looked at.
func (p *program) check(l *listed, v variant, checked map[string]*types.Package) (*types.Package, error) {
	own := l.Module != nil && l.Module.Main
	mode := parser.SkipObjectResolution
	if own {
		mode |= parser.ParseComments
	}
	q := &pkg{path: l.ImportPath, name: l.Name, dir: l.Dir}
	for _, name := range l.GoFiles {
		f, err := parser.ParseFile(p.fset, filepath.Join(l.Dir, name), nil, mode)
		if err != nil {
			return nil, err
		}
		q.syntax = append(q.syntax, f)
	}
	config := types.Config{
		Importer: importer{l.ImportMap, checked}, Sizes: types.SizesFor("gc", v.arch),
		IgnoreFuncBodies: !own, FakeImportC: true,
	}
	if own {
		q.info = &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		}
		p.packages[l.ImportPath] = q
	}
	var err error
	q.types, err = config.Check(l.ImportPath, p.fset, q.syntax, q.info)
	return q.types, err
}

// index finds all declarations, and what connects them besides their names.
func (p *program) index() error {
	for _, q := range p.packages {
		for id, o := range q.info.Defs {
			if o != nil {
				p.names[id] = o
			}
		}
		for id, o := range q.info.Uses { // of the type in an embedded field, which is both
			p.names[id] = origin(o)
		}
		for _, f := range q.syntax {
			p.declare(q, f)
		}
		var err error
		if p.bodies[q.path], err = readAssembly(q.dir, p.listed[q.path].SFiles); err != nil {
			return err
		}
	}
	for _, n := range p.nodes {
		p.noteWrites(n)
	}
	p.findInterfaces()
	return nil
}

// origin is the declared object of one that was made of it by type arguments.
func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

// ours tells whether a package is of the module.
func (p *program) ours(q *types.Package) bool {
	return q != nil && (q.Path() == p.module || strings.HasPrefix(q.Path(), p.module+"/"))
}
