package admission

import "slices"

// Access says who may ask a node for what. The zero value lets everybody do everything: for the machine itself and for
// networks that are one's own.
type Access struct {
	// Tokens, if set, are what trainers may show. A token that is not among them is refused, whatever else a trainer
	// shows.
	Tokens *Tokens
	// Certificates lets in who shows a certificate that the connection's TLS has verified.
	Certificates bool
	// Rules by identity; that of "*" is for all identities without one of their own. With none at all, whoever is let
	// in may have all data; else what no rule allows is refused.
	Rules map[string]Rule
}

// Rule is what one identity may do. Numbers count all its streams together; 0 is no limit but the node's own.
type Rule struct {
	// Roots are the names of those it may read; "*" stands for all.
	Roots []string
	// Streams at once, and Wants held at once.
	Streams, Wants int
	// Bytes of memory for its batches.
	Bytes int64
	// CallsPerSecond bounds Open, Fetch and Replay, WantsPerSecond what comes in over its streams, BytesPerSecond the
	// batches that go out. Calls beyond are refused as busy; wants and bytes wait.
	CallsPerSecond, WantsPerSecond, BytesPerSecond float64
	// Weight is its share of the cores where all want more than there is, see control/share, and of the memory for
	// batches, see budget; 0: 1.
	Weight float64
	// Watch lets it see all jobs of the node by Watch.
	Watch bool
}

// isRestricted reports whether callers have to say who they are.
func (a *Access) isRestricted() bool { return a.Tokens != nil || a.Certificates || len(a.Rules) > 0 }

// ruleOf is what holds for an identity.
func (a *Access) ruleOf(identity string) (Rule, error) {
	if len(a.Rules) == 0 {
		return Rule{Roots: []string{anyRoot}}, nil
	}
	for _, name := range []string{identity, anyRoot} {
		if r, ok := a.Rules[name]; ok {
			return r, nil
		}
	}
	return Rule{}, &AccessError{identity, "has no rule on this node: whoever runs it has to name it in identities"}
}

// WeightOf is an identity's share of the cores; 0: as any other.
func (a *Access) WeightOf(identity string) float64 {
	r, _ := a.ruleOf(identity)
	return r.Weight
}

// weightOr1 is Weight as it counts.
func (r *Rule) weightOr1() float64 {
	if r.Weight > 0 {
		return r.Weight
	}
	return 1
}

// anyRoot stands for all roots, and among identities for all that have no rule.
const anyRoot = "*"

// mayRead reports whether a root may be read.
func (r *Rule) mayRead(root string) bool {
	return slices.Contains(r.Roots, root) || slices.Contains(r.Roots, anyRoot)
}
