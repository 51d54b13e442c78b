package source

import (
	"go/ast"
	"go/types"
	"path"
)

// opInterface is what the values of the registry's ops implement, in transformPackage.
const opInterface = "op"

// isOp tells whether a declaration is the type of an op, or a method of one. Its values are made by what the registry
// names, which is the root of its unit: code that only asks of which type an op is needs nothing of that.
func (p *program) isOp(n *node) bool {
	q := p.packages[path.Join(p.module, transformPackage)]
	t := n.typ
	if f, is := n.object.(*types.Func); is {
		t = receiver(f)
	}
	if t == nil || n.pkg != q {
		return false
	}
	o := q.types.Scope().Lookup(opInterface)
	if o == nil || o == t.Obj() {
		return false
	}
	i, is := o.Type().Underlying().(*types.Interface)
	if !is || !types.Implements(types.NewPointer(t), i) {
		return false
	}
	for m := range i.Methods() { // and not by an op within it
		if f, _, _ := types.LookupFieldOrMethod(t, true, q.types, m.Name()); p.nodes[f] == nil {
			return false
		}
	}
	return true
}

// makes tells whether a declaration may make a value of an op's type, and whether it is a method of that type.
func (p *program) makes(from, to *node) (found bool) {
	t := to.typ
	if f, is := to.object.(*types.Func); is {
		t = receiver(f)
	}
	if f, is := from.object.(*types.Func); is && receiver(f) == t || from.typ == t {
		return true
	}
	info := from.pkg.info
	is := func(e ast.Expr) bool { return e != nil && info.TypeOf(e) != nil && named(info.TypeOf(e)) == t }
	ast.Inspect(from.syntax, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.CompositeLit:
			found = found || is(x)
		case *ast.CallExpr: // a conversion, or new
			tv := info.Types[x.Fun]
			found = found || (tv.IsType() || tv.IsBuiltin()) && is(x)
		case *ast.ValueSpec:
			found = found || is(x.Type)
		case *ast.Field: // of a struct that has one, and of a function that returns one by name
			_, pointer := x.Type.(*ast.StarExpr)
			found = found || is(x.Type) && !pointer
		}
		return !found
	})
	return found
}
