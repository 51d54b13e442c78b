package main

import (
	"go/ast"
	"go/constant"
	"go/token"
	"slices"
	"strings"
)

// fewestWantFields is how many of a want's fields make a type or a literal a statement of what a want is.
const fewestWantFields = 3

var wantFields = []string{"dst", "grow", "image", "step", "due", "begun", "done"}

func countWantFields(names []string) int {
	n := 0
	for _, name := range names {
		if slices.Contains(wantFields, strings.ToLower(name)) {
			n++
		}
	}
	return n
}

// lawsOf names the laws that a function states, each once.
func (r *goReader) lawsOf(d *ast.FuncDecl) []string {
	found := map[string]bool{}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			found[lawWant] = found[lawWant] || countWantFields(keysOf(n)) >= fewestWantFields
		case *ast.BinaryExpr:
			found[lawLayout] = found[lawLayout] || isAligned(n)
			found[lawOrder] = found[lawOrder] || isSharedAmongRanks(n)
			found[lawThreshold] = found[lawThreshold] || r.isThreshold(n)
			found[lawCost] = found[lawCost] || isMovingStep(n) && mentions(d, costWords)
		case *ast.CallExpr:
			found[lawCost] = found[lawCost] || isAverageOfCost(n)
		}
		return true
	})
	var laws []string
	for _, law := range []string{lawWant, lawLayout, lawOrder, lawThreshold, lawCost} {
		if found[law] {
			laws = append(laws, law)
		}
	}
	return laws
}

func keysOf(l *ast.CompositeLit) []string {
	var keys []string
	for _, e := range l.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok {
				keys = append(keys, id.Name)
			}
		}
	}
	return keys
}

// isAligned finds (n + align - 1) &^ (align - 1): a size rounded up to a constant that is named for it.
func isAligned(e *ast.BinaryExpr) bool {
	return e.Op == token.AND_NOT && mentions(e.Y, []string{"align"})
}

// isSharedAmongRanks finds (n + ranks - 1) / ranks.
func isSharedAmongRanks(e *ast.BinaryExpr) bool {
	if e.Op != token.QUO || !mentions(e.Y, rankWords) {
		return false
	}
	sum := false
	ast.Inspect(e.X, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		sum = sum || ok && b.Op == token.SUB && mentions(b.X, rankWords)
		return true
	})
	return sum
}

// isThreshold finds loss >= slight, and the like: a constant between 0 and 1 beside what a loop lost.
func (r *goReader) isThreshold(e *ast.BinaryExpr) bool {
	switch e.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
	default:
		return false
	}
	return r.isShare(e.Y) && mentions(e.X, lossWords) || r.isShare(e.X) && mentions(e.Y, lossWords)
}

func (r *goReader) isShare(e ast.Expr) bool {
	v := r.info.Types[e].Value
	if v == nil || v.Kind() != constant.Float && v.Kind() != constant.Int {
		return false
	}
	x, _ := constant.Float64Val(constant.ToFloat(v))
	return x > 0 && x < 1
}

// isMovingStep finds old + (new - old) / weight, and with * in place of /.
func isMovingStep(e *ast.BinaryExpr) bool {
	step, ok := ast.Unparen(e.Y).(*ast.BinaryExpr)
	if e.Op != token.ADD || !ok || step.Op != token.QUO && step.Op != token.MUL {
		return false
	}
	for _, side := range []ast.Expr{step.X, step.Y} {
		difference, ok := ast.Unparen(side).(*ast.BinaryExpr)
		if ok && difference.Op == token.SUB && sameWords(difference.Y, e.X) {
			return true
		}
	}
	return false
}

// isAverageOfCost finds cost.Add(seconds/samples, weight).
func isAverageOfCost(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Add" && len(c.Args) == 2 && mentions(s.X, costWords)
}

func sameWords(a, b ast.Expr) bool {
	return strings.Join(identsOf(a), ".") == strings.Join(identsOf(b), ".")
}

// mentions reports whether one of the words is part of a name in n.
func mentions(n ast.Node, words []string) bool {
	for _, id := range identsOf(n) {
		for _, part := range splitWords(id) {
			if slices.Contains(words, part) {
				return true
			}
		}
	}
	return false
}

func identsOf(n ast.Node) []string {
	var names []string
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names = append(names, id.Name)
		}
		return true
	})
	return names
}

var (
	rankWords = []string{"ranks", "world"}
	lossWords = []string{"loss", "stall", "wait", "idle"}
	costWords = []string{"cost", "lately"}
)
