package source

import (
	"go/ast"
	"go/token"
	"go/types"
)

// node is a declaration at the top level of a package: a function, a method, a type, or a variable with those of its
// line. Constants are none: who names one depends on its value alone.
type node struct {
	name   string // as "Runner.Begin", for people
	pkg    *pkg
	syntax ast.Node
	doc    *ast.CommentGroup
	object types.Object // nil: values that nobody names
	// typ is set for types.
	typ *types.Named
}

// declare adds the declarations of a file.
func (p *program) declare(q *pkg, f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			p.declareFunction(q, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					p.declareType(q, d, s)
				case *ast.ValueSpec:
					if d.Tok == token.VAR {
						p.declareVariables(q, d, s)
					}
				}
			}
		}
	}
}

func (p *program) declareFunction(q *pkg, d *ast.FuncDecl) {
	f := q.info.Defs[d.Name].(*types.Func)
	n := &node{name: d.Name.Name, pkg: q, syntax: d, doc: d.Doc, object: f}
	if t := receiver(f); t != nil {
		n.name = t.Obj().Name() + "." + n.name
	}
	p.nodes[f] = n
	if d.Recv == nil && d.Name.Name == "init" {
		p.initial[q.path] = append(p.initial[q.path], n)
	}
}

// receiver is the type that a method is of; nil for functions, and for methods of interfaces.
func receiver(f *types.Func) *types.Named {
	r := f.Signature().Recv()
	if r == nil {
		return nil
	}
	return named(r.Type())
}

// named is the type that t or *t is; nil if that has no name.
func named(t types.Type) *types.Named {
	if q, is := types.Unalias(t).(*types.Pointer); is {
		t = q.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	if n == nil {
		return nil
	}
	return n.Origin()
}

func (p *program) declareType(q *pkg, d *ast.GenDecl, s *ast.TypeSpec) {
	o := q.info.Defs[s.Name].(*types.TypeName)
	n := &node{name: s.Name.Name, pkg: q, syntax: s, doc: either(s.Doc, d.Doc), object: o}
	if !o.IsAlias() {
		n.typ = named(o.Type())
	}
	p.nodes[o] = n
}

func either(a, b *ast.CommentGroup) *ast.CommentGroup {
	if a != nil {
		return a
	}
	return b
}

func (p *program) declareVariables(q *pkg, d *ast.GenDecl, s *ast.ValueSpec) {
	n := &node{name: s.Names[0].Name, pkg: q, syntax: s, doc: either(s.Doc, d.Doc)}
	for _, id := range s.Names {
		if id.Name != "_" {
			n.object = q.info.Defs[id]
			p.nodes[n.object] = n
		}
	}
	if n.object == nil && calls(s) {
		p.initial[q.path] = append(p.initial[q.path], n)
	}
}

// calls reports whether evaluating a line may do something.
func calls(s *ast.ValueSpec) (found bool) {
	for _, v := range s.Values {
		ast.Inspect(v, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is {
				_, conversion := call.Fun.(*ast.ParenExpr) // as (*T)(nil)
				found = found || !conversion
			}
			return !found
		})
	}
	return found
}

// noteWrites finds the variables of packages that a function may change: those that stand on the left, or whose address
// it takes.
func (p *program) noteWrites(n *node) {
	f, is := n.syntax.(*ast.FuncDecl)
	if !is || f.Body == nil {
		return
	}
	written := map[*node]bool{}
	note := func(e ast.Expr) {
		if v := p.variable(e); v != nil && !written[v] {
			written[v] = true
			p.writers[v] = append(p.writers[v], n)
		}
	}
	ast.Inspect(f.Body, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.AssignStmt:
			for _, e := range x.Lhs {
				note(e)
			}
		case *ast.IncDecStmt:
			note(x.X)
		case *ast.RangeStmt:
			note(x.Key)
			note(x.Value)
		case *ast.UnaryExpr:
			if x.Op == token.AND {
				note(x.X)
			}
		}
		return true
	})
}

// variable is the variable of a package that an expression is a part of; nil if it is of none.
func (p *program) variable(e ast.Expr) *node {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			v, _ := p.names[x].(*types.Var)
			if v == nil {
				return nil
			}
			return p.nodes[v]
		case *ast.SelectorExpr:
			if v, is := p.names[x.Sel].(*types.Var); is && !v.IsField() {
				return p.nodes[v]
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
