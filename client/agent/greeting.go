package agent

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// socketRevision is that of the packets of docs/agent.md. It is raised with any change that the other side has to know
// of.
const socketRevision = 5

// greeting is the first packet of a Loader's socket, both ways: what the agent and the Python package must have in
// common.
type greeting struct {
	Version string `json:"version"`
	Socket  int    `json:"socket"`
	// Units that are made of both: revisions of the order and the last hop.
	Units map[string]uint32 `json:"units"`
	// Build of the agent, for people.
	Build string `json:"build,omitempty"`
}

// unreleased is the version of a program that was linked without one, which goes with every version.
const unreleased = "dev"

func (o *Options) newGreeting() greeting {
	own := revision.Build()
	return greeting{
		Version: o.Version, Socket: socketRevision, Build: o.Build,
		Units: map[string]uint32{revision.Order: own[revision.Order], revision.LastHop: own[revision.LastHop]},
	}
}

// toPacket is the greeting as it is sent.
func (g greeting) toPacket() []byte { return append([]byte{kindVersion}, mustJSON(g)...) }

// parseGreeting reads a greeting, without its kind.
func parseGreeting(b []byte) (g greeting, err error) {
	if err = json.Unmarshal(b, &g); err != nil {
		err = fmt.Errorf("a greeting that is no JSON: %w", err)
	}
	return g, err
}

// mismatchWith says why the agent cannot serve a package; nil: it can. A package of before greetings sends none.
func (g greeting) mismatchWith(theirs *greeting) error {
	switch {
	case theirs == nil:
		return &failure{Kind: "version", Message: fmt.Sprintf("this feedwater program (build %s) and the Python package that started it, which is too old to tell its "+
			"version, are of different releases: install both from one wheel, or unset FEEDWATER_BINARY", g.Build)}
	case theirs.Socket == g.Socket && (theirs.Version == g.Version || g.Version == unreleased) && maps.Equal(theirs.Units, g.Units):
		return nil
	}
	return &failure{Kind: "version", Message: fmt.Sprintf("this feedwater program (build %s) and the Python package that started it (version %s) are of different "+
		"releases: install both from one wheel, or unset FEEDWATER_BINARY", g.Build, theirs.Version)}
}

// CheckPackage returns an error, in one sentence, if a program of a version and build is of another release than the
// Python package that says of itself what a greeting says: for packages that start the program as something other than
// their agent.
func CheckPackage(theirs, version, build string) error {
	g, err := parseGreeting([]byte(theirs))
	if err != nil {
		return err
	}
	o := Options{Version: version, Build: build}
	return o.newGreeting().mismatchWith(&g)
}
