package source

import (
	"go/types"
	"slices"
	"strings"
)

// closure is all of the module that some declarations need: what these name, what that names, and so on, and what may
// be called without being named. Its text has no comment and no formatting. Declarations stand in it by number, in the
// order in which they are first named, so that another name or place of one does not change it.
type closure struct {
	program *program
	edge    func(from, to *node) fate
	numbers map[*node]int
	order   []*node
	text    strings.Builder
	// reached are the declarations at which it ends, and the packages of other modules.
	reached  map[*node]bool
	packages map[string]bool
	begun    map[string]bool // packages whose initialisation is in it
	because  map[*node]*node // what named a declaration first
	places   map[*pkg]int    // numbers of packages that it ends in, in the order in which they are first named
}

// fate says what becomes of a declaration that another one names.
type fate int

const (
	follow fate = iota
	// end leaves it to another unit: the text has its name.
	end
	// forget leaves it out: the text has its name, and nothing is noted.
	forget
)

// closureOf gathers what the roots need.
func (p *program) closureOf(roots []*node, edge func(from, to *node) fate) (*closure, error) {
	c := &closure{
		program: p, edge: edge, numbers: map[*node]int{}, reached: map[*node]bool{}, packages: map[string]bool{},
		begun: map[string]bool{}, because: map[*node]*node{}, places: map[*pkg]int{},
	}
	for _, r := range roots {
		c.add(r)
		if r.typ != nil {
			for m := range r.typ.Methods() {
				c.addObject(r, m)
			}
		}
	}
	for i := 0; i < len(c.order); i++ {
		if err := c.visit(c.order[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *closure) add(n *node) int {
	number, there := c.numbers[n]
	if !there {
		number = len(c.order)
		c.numbers[n] = number
		c.order = append(c.order, n)
	}
	return number
}

// place is the number of a package that the closure ends in. It tells packages apart without their names, which may
// change.
func (c *closure) place(q *pkg) int {
	number, there := c.places[q]
	if !there {
		number = len(c.places)
		c.places[q] = number
	}
	return number
}

// addObject adds the declaration of an object that another one needs; false where the closure ends at it, and where it
// has none.
func (c *closure) addObject(from *node, o types.Object) (number int, followed bool) {
	n := c.program.nodes[o]
	if n == nil {
		return 0, false
	}
	if _, there := c.numbers[n]; !there {
		switch c.edge(from, n) {
		case end:
			c.reached[n] = true
			return 0, false
		case forget:
			return 0, false
		}
	}
	if _, there := c.numbers[n]; !there {
		c.because[n] = from
	}
	return c.add(n), true
}

// visit writes a declaration and adds what it needs.
func (c *closure) visit(n *node) error {
	if err := c.write(n); err != nil {
		return err
	}
	if n.typ != nil {
		c.addDynamic(n, n.typ)
	}
	for _, t := range local(n.pkg, n.syntax) {
		c.addDynamic(n, t)
	}
	for _, w := range sorted(c.program.writers[n]) {
		c.addObject(n, w.object)
	}
	if path := n.pkg.path; !c.begun[path] {
		c.begun[path] = true
		for _, i := range c.program.initial[path] {
			c.add(i)
		}
	}
	return nil
}

func (c *closure) addDynamic(n *node, t types.Type) {
	for _, m := range c.program.dynamic(t) {
		c.addObject(n, m)
	}
}

func sorted(nodes []*node) []*node {
	return slices.SortedFunc(slices.Values(nodes), func(a, b *node) int {
		return strings.Compare(a.pkg.path+"."+a.name, b.pkg.path+"."+b.name)
	})
}
