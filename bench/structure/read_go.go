package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// goReader takes a package's facts from its syntax and types.
type goReader struct {
	set     *token.FileSet
	info    *types.Info
	own     *types.Package
	folder  *folder
	methods map[string]int // by receiver
}

func (r *goReader) fileOf(at token.Pos) string { return filepath.Base(r.set.Position(at).Filename) }

func (r *goReader) placeOf(at token.Pos) string {
	return fmt.Sprintf("%s/%s:%d", r.folder.path, r.fileOf(at), r.set.Position(at).Line)
}

func (r *goReader) readFile(file *ast.File) {
	r.folder.files = append(r.folder.files, r.fileOf(file.Package))
	if file.Doc != nil && r.folder.doc == "" {
		r.folder.doc = file.Doc.Text()
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			r.readFunction(d)
		case *ast.GenDecl:
			r.readTypes(d)
		}
	}
}

func (r *goReader) readFunction(d *ast.FuncDecl) {
	if d.Recv != nil {
		r.methods[receiverOf(d)]++
	}
	lines := r.set.Position(d.End()).Line - r.set.Position(d.Pos()).Line + 1
	r.folder.functions = append(r.folder.functions, function{d.Name.Name, lines, r.placeOf(d.Pos())})
	if d.Body != nil {
		for _, law := range r.lawsOf(d) {
			r.folder.places = append(r.folder.places, place{law, r.placeOf(d.Pos()) + " " + d.Name.Name})
		}
	}
}

func (r *goReader) readTypes(d *ast.GenDecl) {
	for _, s := range d.Specs {
		t, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		r.folder.types = append(r.folder.types, typeFact{name: t.Name.Name, place: r.placeOf(t.Pos())})
		if fields, ok := t.Type.(*ast.StructType); ok && countWantFields(fieldNames(fields)) >= fewestWantFields {
			r.folder.places = append(r.folder.places, place{lawWant, r.placeOf(t.Pos()) + " type " + t.Name.Name})
		}
	}
}

func fieldNames(s *ast.StructType) []string {
	var names []string
	for _, f := range s.Fields.List {
		for _, n := range f.Names {
			names = append(names, n.Name)
		}
	}
	return names
}

func receiverOf(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func (r *goReader) readMethods() {
	for i := range r.folder.types {
		t := &r.folder.types[i]
		t.methods = r.methods[t.name]
	}
}

// readArrows finds which file uses a name that another file of the package declares: a function, type, method, field or
// value.
func (r *goReader) readArrows(files []*ast.File) {
	own := map[string]bool{}
	for _, f := range r.folder.files {
		own[f] = true
	}
	names := map[arrow]map[string]bool{}
	for _, file := range files {
		from := r.fileOf(file.Package)
		if !own[from] {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := r.info.Uses[id]
			if o == nil || o.Pkg() != r.own || !o.Pos().IsValid() {
				return true
			}
			if to := r.fileOf(o.Pos()); to != from && own[to] {
				if a := (arrow{from, to}); names[a] == nil {
					names[a] = map[string]bool{id.Name: true}
				} else {
					names[a][id.Name] = true
				}
			}
			return true
		})
	}
	r.folder.setArrows(names)
}

func (f *folder) setArrows(names map[arrow]map[string]bool) {
	f.arrows = slices.SortedFunc(maps.Keys(names), func(a, b arrow) int {
		return strings.Compare(a.from+"\x00"+a.to, b.from+"\x00"+b.to)
	})
	f.names = map[arrow][]string{}
	for a, set := range names {
		f.names[a] = slices.Sorted(maps.Keys(set))
	}
}
