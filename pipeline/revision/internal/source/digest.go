// Package source digests what each unit of package revision is made of: of the source of this module all that the
// unit's code can reach, without comments, formatting and the names that packages and functions have, as it is built
// for each kind of processor; the versions of other modules that this reaches; the version of Go; and of Python what
// decides orders and last hops. More than what decides bytes may be in it, and less never is. It reads the source and
// starts the go command and Python; it changes nothing.
package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Unit is what a unit is made of.
type Unit struct {
	// Digest of all of it, in hex.
	Digest string
	// Uses are the families of kernels that the unit calls, sorted.
	Uses []string
	// Declarations of Go and Python that are in it, and the modules.
	Declarations []string
}

// Digest reads the module in dir. python is a Python interpreter.
func Digest(dir, python string) (map[string]Unit, error) {
	made := make([]map[string]part, len(variants))
	var scripts map[string]part
	var group errgroup.Group
	for i, v := range variants {
		group.Go(func() (err error) {
			made[i], err = v.digest(dir)
			return err
		})
	}
	group.Go(func() (err error) {
		scripts, err = digestPython(dir, python)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	m, err := readModules(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]Unit{}
	for name := range made[0] {
		parts := []part{scripts[name]}
		for i := range made {
			parts = append(parts, made[i][name])
		}
		if all[name], err = m.join(parts); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// part is what one variant, or Python, has of a unit.
type part struct {
	text         string
	uses         []string
	modules      []string // other ones, each "path version"
	declarations []string
}

// join makes a unit of its parts.
func (m *modules) join(parts []part) (Unit, error) {
	h := sha256.New()
	var u Unit
	var needed []string
	for _, p := range parts {
		fmt.Fprintf(h, "%d\n%s\n", len(p.text), p.text)
		u.Uses = append(u.Uses, p.uses...)
		needed = append(needed, p.modules...)
		u.Declarations = append(u.Declarations, p.declarations...)
	}
	sums, err := m.sums(needed)
	if err != nil {
		return u, err
	}
	fmt.Fprintf(h, "%s\n%s\n", m.language, strings.Join(sums, "\n"))
	u.Declarations = append(u.Declarations, sums...)
	for _, s := range []*[]string{&u.Uses, &u.Declarations} {
		slices.Sort(*s)
		*s = slices.Compact(*s)
	}
	u.Digest = hex.EncodeToString(h.Sum(nil)[:12])
	return u, nil
}

// digest gathers what a variant has of each unit.
func (v variant) digest(dir string) (map[string]part, error) {
	p, err := load(dir, v, patterns...)
	if err != nil {
		return nil, err
	}
	units, err := p.units()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.name, err)
	}
	done := map[string]*closure{}
	all := map[string]part{}
	for _, u := range units {
		c, err := p.closureOf(u.roots, p.edges(&u, done))
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", v.name, u.name, err)
		}
		done[u.name] = c
		if u.name != "kernel/"+levels {
			all[u.name] = c.part(done)
		}
	}
	return all, nil
}

// edges says where a unit's closure ends: at families of kernels, at the units it stands beside, at ops and formats,
// which are units of their own, and at what decides no byte.
func (p *program) edges(u *unit, done map[string]*closure) func(from, to *node) fate {
	return func(from, to *node) fate {
		below := strings.TrimPrefix(to.pkg.path, p.module+"/")
		whole, _, _ := strings.Cut(to.name, ".")
		if apart[below] != "" || slices.Contains(bookkeeping, below+"."+whole) {
			return forget
		}
		if owner := p.within[to]; owner != "" && owner != u.name {
			return forget
		}
		for _, name := range u.beside {
			if _, there := done[name].numbers[to]; there {
				return forget
			}
		}
		if from.name == registry && path.Base(from.pkg.path) == path.Base(transformPackage) && from.object.Parent() == from.pkg.types.Scope() {
			return forget
		}
		if format := strings.TrimPrefix(below, codecPackage+"/"); slices.Contains(formats, format) && u.name != "codec/"+format {
			return forget
		}
		if below == codecPackage && u.name == "batch" || p.isOp(to) && !p.makes(from, to) {
			return forget
		}
		if !strings.HasPrefix(u.name, "kernel/") && len(owners(to, done)) == 1 {
			return end // of several it is code that they share
		}
		return follow
	}
}

// owners are the families of kernels that a declaration is part of; none where it is none's own.
func owners(n *node, done map[string]*closure) (names []string) {
	if _, there := done["kernel/"+levels].numbers[n]; there {
		return nil
	}
	for name, c := range done {
		if _, there := c.numbers[n]; there && strings.HasPrefix(name, "kernel/") {
			names = append(names, name)
		}
	}
	return names
}

func (c *closure) part(done map[string]*closure) part {
	p := part{text: c.text.String()}
	for n := range c.reached {
		if n.typ != nil {
			continue // who only names a type calls nothing
		}
		p.uses = append(p.uses, owners(n, done)...)
	}
	p.modules = c.program.needed(c.packages)
	for _, n := range c.order {
		p.declarations = append(p.declarations, c.explain(n))
	}
	return p
}

// explain names a declaration, and the ones on the way to it.
func (c *closure) explain(n *node) string {
	text := strings.TrimPrefix(n.pkg.path, c.program.module+"/") + "." + n.name
	for n = c.because[n]; n != nil; n = c.because[n] {
		text += " ← " + n.name
	}
	return text
}
