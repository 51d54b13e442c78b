package local

import (
	"context"
	"fmt"

	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
)

// MatchByFingerprint turns a plan for a folder of this machine into one that pins what is in it, for this machine, and one for whatever folder
// of the nodes holds the same data.
func (p *Pipelines) MatchByFingerprint(ctx context.Context, text []byte, folder string) (here, elsewhere string, err error) {
	plan, err := pipeline.ParsePlan(text)
	if err != nil {
		return "", "", err
	}
	flat := plan.Masks != nil
	empty := plan.Source.AllowEmpty
	plan.Source = pipeline.Source{Path: filename.Name(folder), AllowEmpty: empty}
	if plan.Source.Fingerprint, err = p.fingerprint(ctx, folder, flat, empty); err != nil {
		return "", "", err
	}
	if flat && plan.Masks.Root == "" {
		if plan.Masks.Fingerprint, err = p.fingerprint(ctx, string(plan.Masks.Path), flat, empty); err != nil {
			return "", "", err
		}
	}
	here = string(plan.Canonical())
	plan.Source.Path = ""
	if flat && plan.Masks.Root == "" {
		plan.Masks.Path = ""
	}
	return here, string(plan.Canonical()), nil
}

// fingerprint is that of a folder of this machine.
func (p *Pipelines) fingerprint(ctx context.Context, folder string, flat, empty bool) (string, error) {
	o := p.options.Lists
	o.Flat, o.Empty = flat, empty
	s, err := pipeline.OpenFolder(ctx, p.Storage(), folder, o)
	if err != nil {
		return "", &node.DataError{Path: folder, Message: fmt.Sprintf("find %s on the nodes by its fingerprint: %v", folder, err)}
	}
	defer s.Close()
	return s.Fingerprint(), nil
}

// Listing is what a folder holds.
type Listing struct {
	Fingerprint string
	// Counts are the samples of each class, in label order.
	Counts []int
	// Keys are those of all samples, each with a zero byte behind it.
	Keys []byte
}

// List is what a folder of this machine holds. Errors are *node.DataError.
func (p *Pipelines) List(ctx context.Context, folder string) (found Listing, err error) {
	o := p.options.Lists
	o.Flat, o.Empty = true, true
	s, err := pipeline.OpenFolder(ctx, p.Storage(), folder, o)
	if err != nil {
		return found, &node.DataError{Path: folder, Message: err.Error()}
	}
	defer s.Close()
	for _, c := range s.Classes() {
		found.Counts = append(found.Counts, c.Samples)
	}
	found.Fingerprint = s.Fingerprint()
	found.Keys, err = s.AppendKeys(nil)
	return found, err
}
