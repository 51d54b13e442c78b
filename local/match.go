package local

import (
	"context"
	"fmt"
	"io"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
)

// MatchByFingerprint turns a plan for a folder of this machine into one that pins what is in it, for this machine, and
// one for whatever folder of the nodes holds the same data. table is the list that the plan names, nil if it names
// none.
func (p *Pipelines) MatchByFingerprint(ctx context.Context, text []byte, folder string, table *client.Table) (here, elsewhere string, err error) {
	plan, err := pipeline.ParsePlan(text)
	if err != nil {
		return "", "", err
	}
	flat := plan.Masks != nil
	empty := plan.Source.AllowEmpty
	source := plan.Source
	source.Root, source.Path, source.Fingerprint = "", filename.Name(folder), ""
	plan.Source = source
	if plan.Source.Fingerprint, err = p.fingerprintOf(ctx, source, table, flat); err != nil {
		return "", "", err
	}
	if flat && plan.Masks.Root == "" {
		if plan.Masks.Fingerprint, err = p.fingerprintOf(ctx, pipeline.Source{Path: plan.Masks.Path, AllowEmpty: empty}, nil, flat); err != nil {
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

// fingerprintOf is that of a folder of this machine, or of what a table lists below it.
func (p *Pipelines) fingerprintOf(ctx context.Context, source pipeline.Source, table *client.Table, flat bool) (string, error) {
	o, folder := p.options.Lists, string(source.Path)
	o.Flat, o.Empty, o.Columns = flat, source.AllowEmpty, source.Columns()
	var err error
	if table != nil {
		if o.Table, err = p.keepTable(table); err != nil {
			return "", err
		}
	}
	s, err := pipeline.OpenFolder(ctx, p.Storage(), folder, o)
	if err != nil {
		return "", &node.DataError{Path: folder, Message: fmt.Sprintf("find %s on the nodes by its fingerprint: %v", folder, err)}
	}
	defer s.Close()
	return s.Fingerprint(), nil
}

// keepTable is the file of a table.
func (p *Pipelines) keepTable(table *client.Table) (string, error) {
	if path, err := p.options.Tables.Find("", table.SHA256); err == nil {
		return path, nil
	}
	if err := p.options.Tables.Keep("", table.SHA256, table.Bytes, io.NewSectionReader(table.Text, 0, table.Bytes)); err != nil {
		return "", fmt.Errorf("keep a table: %w", err)
	}
	return p.options.Tables.Find("", table.SHA256)
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
	if found.Keys, err = s.AppendKeys(nil); err != nil {
		err = &node.DataError{Path: folder, Message: err.Error()}
	}
	return found, err
}
