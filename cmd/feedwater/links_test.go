package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/identities"
)

// A link to a picture of another root: where links stay beneath their root the trainer hears which one it is, and what would allow it.
func TestLinkToAnotherRoot(t *testing.T) {
	photos, secret := pictures(t, 1), pictures(t, 2)
	if err := os.Symlink(filepath.Join(secret, "class0"), filepath.Join(photos, "stolen")); err != nil {
		t.Fatal(err)
	}
	for links, allowed := range map[string]bool{"beneath": false, "anywhere": true} {
		n := start(t, "--data", "photos="+photos, "--data", "secret="+secret, "--links", links, "--cache-dir", t.TempDir())
		f, err := client.New(client.Options{Plan: crops, Nodes: []string{n.addr}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.Open(t.Context())
		f.Close()
		switch _, denied := errors.AsType[*node.AccessError](err); {
		case allowed && (err != nil || r.Samples != 24):
			t.Errorf("%s: %d samples, %v", links, r.GetSamples(), err)
		case !allowed && (!denied || !strings.Contains(err.Error(), "stolen: a link leads out of the root") || !strings.Contains(err.Error(), "--links=anywhere")):
			t.Errorf("%s: %v", links, err)
		}
	}
}

func TestLinksStayBeneathWhereThereAreIdentities(t *testing.T) {
	for _, c := range []struct {
		links      string
		identities identities.Map
		want       bool
	}{{"", nil, false}, {"", identities.Map{"a": {}}, true}, {"anywhere", identities.Map{"a": {}}, false}, {"beneath", nil, true}} {
		o := serveOptions{links: c.links}
		o.identities = c.identities
		if o.linksBeneath() != c.want {
			t.Errorf("--links %q with %d identities: %v", c.links, len(c.identities), !c.want)
		}
	}
}
