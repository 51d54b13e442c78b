package source

import (
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// write appends the tokens of a declaration, what the compiler is told beside them, and the assembly that a function
// without a body has.
func (c *closure) write(n *node) error {
	fmt.Fprintf(&c.text, "\n%T ", n.syntax)
	if err := c.writeDirectives(n); err != nil {
		return err
	}
	w := writer{closure: c, node: n, identifiers: map[token.Pos]*ast.Ident{}}
	ast.Inspect(n.syntax, func(x ast.Node) bool {
		if id, is := x.(*ast.Ident); is {
			w.identifiers[id.Pos()] = id
		}
		return true
	})
	if err := w.tokens(); err != nil {
		return err
	}
	if f, is := n.syntax.(*ast.FuncDecl); is && f.Body == nil {
		c.writeAssembly(n)
	}
	return nil
}

func (c *closure) writeAssembly(n *node) {
	text, outside := c.program.bodies[n.pkg.path].text(n.name)
	c.text.WriteString(text)
	for _, name := range outside {
		if o := n.pkg.types.Scope().Lookup(name); o != nil {
			c.addObject(n, o)
		}
	}
}

// writeDirectives writes the lines that the compiler reads, and the digests of files that it embeds.
func (c *closure) writeDirectives(n *node) error {
	if n.doc == nil {
		return nil
	}
	for _, line := range n.doc.List {
		directive, is := strings.CutPrefix(line.Text, "//go:")
		if !is {
			continue
		}
		c.text.WriteString(directive + "\n")
		patterns, is := strings.CutPrefix(directive, "embed ")
		if !is {
			continue
		}
		for _, pattern := range strings.Fields(patterns) {
			if err := c.writeFiles(n.pkg.dir, pattern); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *closure) writeFiles(dir, pattern string) error {
	names, err := fs.Glob(os.DirFS(dir), strings.Trim(pattern, "\"`"))
	if err != nil {
		return err
	}
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(dir, name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			fmt.Fprintf(&c.text, "%s %x\n", filepath.Base(path), sha256.Sum256(text))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writer writes the tokens of a declaration.
type writer struct {
	*closure
	node        *node
	identifiers map[token.Pos]*ast.Ident
	skip        bool   // the point behind a package's name
	held        string // a token that stands only before some others
}

// tokens writes all tokens, those left out that only the layout of lines asks for.
func (w *writer) tokens() error {
	file := w.program.fset.File(w.node.syntax.Pos())
	text, err := os.ReadFile(file.Name())
	if err != nil {
		return err
	}
	from, to := file.Offset(w.node.syntax.Pos()), file.Offset(w.node.syntax.End())
	fresh := token.NewFileSet().AddFile("", 1, to-from)
	var s scanner.Scanner
	s.Init(fresh, text[from:to], nil, 0)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return nil
		}
		w.token(file.Pos(from+fresh.Offset(pos)), tok, literal)
	}
}

func (w *writer) token(pos token.Pos, tok token.Token, literal string) {
	held := w.held
	w.held = ""
	switch {
	case tok == token.PERIOD && w.skip:
		w.skip = false
		return
	case tok == token.COMMA || tok == token.SEMICOLON:
		w.put(held)
		w.held = tok.String()
		return
	case !slices.Contains([]token.Token{token.RPAREN, token.RBRACE, token.RBRACK}, tok):
		w.put(held)
	}
	switch {
	case tok == token.IDENT:
		w.identifier(pos, literal)
	case tok.IsLiteral():
		w.put(literal)
	default:
		w.put(tok.String())
	}
}

func (w *writer) put(s string) {
	if s != "" {
		w.text.WriteString(s)
		w.text.WriteByte(' ')
	}
}

// identifier writes what an identifier stands for.
func (w *writer) identifier(pos token.Pos, name string) {
	id := w.identifiers[pos]
	o := w.program.names[id]
	if q, is := o.(*types.PkgName); is {
		w.skip = true
		if !w.program.ours(q.Imported()) {
			w.packages[q.Imported().Path()] = true
			w.put(q.Imported().Path() + ".")
		}
		return
	}
	if o == nil || o.Pkg() == nil {
		w.put(name)
		return
	}
	if !w.program.ours(o.Pkg()) {
		w.packages[o.Pkg().Path()] = true
		w.put(name)
		return
	}
	if k, is := o.(*types.Const); is && o.Parent() == o.Pkg().Scope() {
		w.constant(k)
		return
	}
	w.object(o, name)
}

// constant writes the value and the type of a constant.
func (w *writer) constant(k *types.Const) {
	w.put(k.Val().ExactString())
	if t := named(k.Type()); t != nil {
		w.object(t.Obj(), t.Obj().Name())
	} else {
		w.put(k.Type().String())
	}
}

// object writes the number of what is declared in a package, or where the closure ends there its name and a number of its package. Methods and what
// is declared within a function keep their names.
func (w *writer) object(o types.Object, name string) {
	n := w.program.nodes[o]
	if n == nil {
		w.put(name)
		return
	}
	number, followed := w.addObject(w.node, o)
	f, method := o.(*types.Func)
	switch {
	case method && f.Signature().Recv() != nil:
		w.put(name)
	case followed:
		w.put(fmt.Sprintf("#%d", number))
	default:
		w.put(fmt.Sprintf("%d.%s", w.place(n.pkg), name))
	}
}
