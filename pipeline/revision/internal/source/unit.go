package source

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/pipeline/imageformat"
)

// Where the units begin, below the module's path. Who moves a package says so here; all else is found.
const (
	orderPackage     = "pipeline/order"
	transformPackage = "pipeline/transform"
	codecPackage     = "pipeline/codec"
	kernelPackage    = "pipeline/internal/kernel"
	batchPackage     = "pipeline"
	agentPackage     = "client/agent"
	lastHopPackage   = "client/agent/lasthop"
	// registry is the map in transformPackage from the names of ops to what makes them.
	registry = "ops"
	// levels is the part of kernelPackage that is of no family: it is in whatever unit calls it.
	levels = "levels"
)

// formats are the packages below codecPackage that are a codec each.
var formats = imageformat.Names()

// roots of the units that are parts of a package.
var (
	orderRoots  = []string{"Permutation", "NewPermutation", "NewBlockPermutation", "Epoch"}
	kernelRoots = map[string][]string{
		levels:   {"Levels", "Best", "Check", "Vector"},
		"jpeg":   {"JPEG", "JPEGFor", "Block"},
		"resize": {"Taps", "Horizontal", "NewHorizontal", "Vertical", "NewVertical"},
	}
	batchRoots   = []string{"ParsePlan", "Job.Submit", "Pipeline.Prepare", "Pipeline.PrepareMasked", "worker.makeSample", "assembly.buildResult"}
	lastHopRoots = []string{"Hop", "Hops", "Picture", "NewPictures", "canvas"}
	// agentRoots belong to the last hop too.
	agentRoots = []string{"delivery.eraseBoxes"}
)

// within are parts of other units' code that are units of their own, since few plans or pictures use them: those of
// others end there. By unit.
var within = map[string]struct {
	pkg   string
	roots []string
}{
	"exif":     {codecPackage, []string{"Decoder.ParseUpright", "upright.decode", "upright.Rows"}},
	"oversize": {transformPackage, []string{"program.allowOversize", "program.tooLarge"}},
}

// patterns are the packages that are read.
var patterns = []string{"./pipeline/...", "./client/agent/..."}

// apart are packages that decide no byte, each for the reason that it gives.
var apart = map[string]string{
	"pipeline/revision":  "says which revisions there are",
	"control/share":      "decides when a sample is made, and nothing about it",
	"pipeline/spelling":  "words an error",
	"proto/feedwater/v1": "carries values, with numbers for names that do not change",
	"client":             "asks for batches; what it asks for is in their names",
	"client/node":        "carries batches, whose checksums tell that they are the same",
	"span":               "tells what took how long",
	"watch":              "tells how it goes",
	"watch/pulse":        "tells how it goes",
}

// bookkeeping are types, with their methods, that decide no byte but stand in the way to many: what is queued, lent,
// and in use.
var bookkeeping = []string{"client/agent.delivery", "client/agent.slots", "client/agent.loader", "pipeline.Pipeline", "pipeline.queue"}

// unit is a unit before it has a digest.
type unit struct {
	name  string
	roots []*node
	// beside are units whose code is not part of this one: who uses this one uses them.
	beside []string
}

// units finds all units. Those that others are beside come first.
func (p *program) units() ([]unit, error) {
	var all []unit
	err := p.findWithin()
	add := func(name, pkg string, names []string, beside ...string) {
		roots, e := p.find(pkg, names)
		if e != nil {
			err = fmt.Errorf("%s: %w", name, e)
		}
		roots = slices.DeleteFunc(roots, func(n *node) bool { return p.within[n] != "" && p.within[n] != name })
		all = append(all, unit{name, roots, beside})
	}
	for _, family := range slices.Sorted(maps.Keys(kernelRoots)) {
		add("kernel/"+family, kernelPackage, kernelRoots[family])
	}
	add("order", orderPackage, orderRoots)
	add("draws", orderPackage, p.exportedBut(orderPackage, orderRoots), "order")
	add("lasthop", lastHopPackage, lastHopRoots, "order", "draws")
	erasing, e := p.find(agentPackage, agentRoots)
	if e != nil {
		err = fmt.Errorf("lasthop: %w", e)
	}
	all[len(all)-1].roots = append(all[len(all)-1].roots, erasing...)
	add("batch", batchPackage, batchRoots, "order", "draws")
	add("files", codecPackage, p.usedOutside(codecPackage), "batch")
	add("exif", within["exif"].pkg, within["exif"].roots, "batch", "files")
	add("oversize", within["oversize"].pkg, within["oversize"].roots, "order", "draws", "batch")
	for _, f := range formats {
		add("codec/"+f, codecPackage+"/"+f, p.usedOutside(codecPackage+"/"+f), "order", "draws", "batch", "files")
	}
	if err != nil {
		return nil, err
	}
	ops, err := p.ops()
	return append(all, ops...), err
}

// findWithin finds the roots of the units within others.
func (p *program) findWithin() error {
	p.within = map[*node]string{}
	for name, part := range within {
		roots, err := p.find(part.pkg, part.roots)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, n := range roots {
			p.within[n] = name
		}
	}
	return nil
}

// package of the module, by its path below the module's.
func (p *program) scope(pkg string) (*types.Package, error) {
	q := p.packages[path.Join(p.module, pkg)]
	if q == nil {
		return nil, fmt.Errorf("there is no package %s", pkg)
	}
	return q.types, nil
}

// find finds declarations by name: "Function", "Type", or "Type.Method".
func (p *program) find(pkg string, names []string) ([]*node, error) {
	q, err := p.scope(pkg)
	if err != nil {
		return nil, err
	}
	var all []*node
	for _, name := range names {
		first, method, is := strings.Cut(name, ".")
		o := q.Scope().Lookup(first)
		if is && o != nil {
			o, _, _ = types.LookupFieldOrMethod(o.Type(), true, q, method)
		}
		n := p.nodes[o]
		if n == nil {
			return nil, fmt.Errorf("%s declares no %s", pkg, name)
		}
		all = append(all, n)
	}
	return all, nil
}

// exportedBut are the exported names of a package, but for some, in order.
func (p *program) exportedBut(pkg string, names []string) []string {
	q, err := p.scope(pkg)
	if err != nil {
		return []string{"?"}
	}
	var rest []string
	for _, name := range q.Scope().Names() {
		o := q.Scope().Lookup(name)
		if _, constant := o.(*types.Const); !constant && o.Exported() && !slices.Contains(names, name) {
			rest = append(rest, name)
		}
	}
	return rest
}

// usedOutside are the names of a package that other packages use, in order.
func (p *program) usedOutside(pkg string) []string {
	q, err := p.scope(pkg)
	if err != nil {
		return []string{"?"}
	}
	used := map[string]bool{}
	for _, other := range p.packages {
		if other.types == q {
			continue
		}
		for _, o := range other.info.Uses {
			if n := p.nodes[origin(o)]; n != nil && n.pkg.types == q {
				used[n.name] = true
			}
		}
	}
	var names []string
	for name := range used {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ops reads the registry.
func (p *program) ops() ([]unit, error) {
	found, err := p.find(transformPackage, []string{registry})
	if err != nil {
		return nil, err
	}
	spec := found[0].syntax.(*ast.ValueSpec)
	table, is := spec.Values[0].(*ast.CompositeLit)
	if !is {
		return nil, fmt.Errorf("%s.%s is no map literal", transformPackage, registry)
	}
	var all []unit
	for _, e := range table.Elts {
		entry := e.(*ast.KeyValueExpr)
		name, known := entry.Key.(*ast.BasicLit)
		maker, named := entry.Value.(*ast.Ident)
		if !known || !named || p.nodes[p.names[maker]] == nil {
			return nil, fmt.Errorf("%s.%s: an entry is not a name and a function", transformPackage, registry)
		}
		all = append(all, unit{
			"op/" + strings.Trim(name.Value, `"`), []*node{p.nodes[p.names[maker]]},
			[]string{"order", "draws", "batch", "files"},
		})
	}
	return all, nil
}
