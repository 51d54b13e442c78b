package source

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// asked are methods that the standard library looks for by interfaces that it does not export.
var asked = []string{"Error", "Is", "As", "Unwrap", "IsZero", "Timeout", "Temporary"}

// findInterfaces collects the interfaces that the module has anywhere, and those of the packages that it imports. A
// method that one of them has can be called wherever its type is.
func (p *program) findInterfaces() {
	seen := map[*types.Package]bool{}
	for _, q := range p.packages {
		for e, tv := range q.info.Types {
			if _, is := e.(*ast.InterfaceType); is {
				p.addInterface(tv.Type)
			}
		}
		p.addImported(q.types, seen)
	}
}

func (p *program) addImported(q *types.Package, seen map[*types.Package]bool) {
	if seen[q] {
		return
	}
	seen[q] = true
	for _, name := range q.Scope().Names() {
		if t, is := q.Scope().Lookup(name).(*types.TypeName); is && !p.ours(q) {
			p.addInterface(t.Type())
		}
	}
	for _, other := range q.Imports() {
		p.addImported(other, seen)
	}
}

func (p *program) addInterface(t types.Type) {
	if i, is := t.Underlying().(*types.Interface); is && i.NumMethods() > 0 {
		p.interfaces = append(p.interfaces, i)
	}
}

// dynamic are the methods of a type that can be called without being named, by name. Where types have parameters all
// methods are.
func (p *program) dynamic(t types.Type) []*types.Func {
	found := map[*types.Func]bool{}
	set := types.NewMethodSet(types.NewPointer(t))
	n := named(t)
	generic := n != nil && n.TypeParams().Len() > 0
	for i := range set.Len() {
		f := set.At(i).Obj().(*types.Func)
		if generic || slices.Contains(asked, f.Name()) {
			found[f.Origin()] = true
		}
	}
	if !generic && set.Len() > 0 {
		for _, i := range p.interfaces {
			p.implemented(set, i, found)
		}
	}
	return sortedMethods(found)
}

// implemented adds the methods by which a type with this set implements an interface. Names decide: signatures of type
// parameters cannot be compared here, and one method too many does no harm.
func (p *program) implemented(set *types.MethodSet, i *types.Interface, found map[*types.Func]bool) {
	var all []*types.Func
	for k := range i.NumMethods() {
		m := i.Method(k)
		s := set.Lookup(m.Pkg(), m.Name())
		if s == nil {
			return
		}
		f := s.Obj().(*types.Func)
		if f.Signature().Params().Len() != m.Signature().Params().Len() || f.Signature().Results().Len() != m.Signature().Results().Len() {
			return
		}
		all = append(all, f.Origin())
	}
	for _, f := range all {
		found[f] = true
	}
}

func sortedMethods(found map[*types.Func]bool) []*types.Func {
	all := make([]*types.Func, 0, len(found))
	for f := range found {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *types.Func) int { return strings.Compare(a.FullName(), b.FullName()) })
	return all
}

// local are the types that a declaration makes values of and that have no declaration of their own: those within
// functions, and those without a name.
func local(q *pkg, syntax ast.Node) []types.Type {
	var all []types.Type
	ast.Inspect(syntax, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.TypeSpec:
			if o := q.info.Defs[x.Name]; o != nil && o.Parent() != q.types.Scope() {
				all = append(all, o.Type())
			}
		case *ast.StructType:
			all = append(all, q.info.TypeOf(x))
		}
		return true
	})
	return all
}
