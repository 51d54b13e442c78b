package revision

// BeforeRevisions names the builds that did not tell their revisions, for people.
const BeforeRevisions = "before revisions were told"

// known are the numerics of builds that did not tell their revisions, and of which revision they had which units: 1 of
// each but those named here. States of theirs name nothing else. python/feedwater/_agent/revisions.py has the same
// digests.
var known = map[string]Set{
	"577cd4131bcd91a076df916525228a76": {},
}

// OfNumerics returns the revisions of a build that is known by its numerics alone, as states of version 1 name it; of
// each unit that this build has.
func OfNumerics(digest string) (Set, bool) {
	units, ok := known[digest]
	if !ok {
		return nil, false
	}
	s := Build()
	for name := range s {
		s[name] = 1
		if n, other := units[name]; other {
			s[name] = n
		}
	}
	return s, true
}
