package pipeline

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/imageformat"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// Ops are the names of all ops of a plan, those inside others too, sorted and each once.
func (p *Plan) Ops() []string {
	names := map[string]bool{}
	for _, c := range append(p.Views[:len(p.Views):len(p.Views)], p.Transforms) {
		var tree any
		if json.Unmarshal(marshalCanonical(c), &tree) == nil {
			addOps(tree, names)
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// addOps adds the ops that stand anywhere in a chain's JSON.
func addOps(tree any, names map[string]bool) {
	switch v := tree.(type) {
	case []any:
		for _, inner := range v {
			addOps(inner, names)
		}
	case map[string]any:
		if name, ok := v["op"].(string); ok {
			names[name] = true
		}
		for _, inner := range v {
			addOps(inner, names)
		}
	}
}

// Uses is what decides which units the plan uses, whatever its files are.
func (p *Plan) Uses() revision.Plan { return revision.Plan{Ops: p.Ops(), ApplyEXIF: p.ApplyEXIF} }

// CodecUnits returns the units of a build that files decide about: what decodes those of each format, and what becomes
// of pictures beyond the limits.
func CodecUnits(build revision.Set) revision.Set {
	all := build.OfOversize()
	for _, format := range imageformat.Names() {
		maps.Copy(all, build.OfFormat(format))
	}
	return all
}

// Pin has the job make samples only with codecs of these revisions: a want that meets a file of a format of which this
// build has another one ends with *RevisionError, and so does one that meets a picture beyond the limits if pictures
// like that are of another one. It is called before the first want. A unit that codecs does not have is of revision 0.
func (j *Job) Pin(codecs revision.Set) {
	refused := map[string]*RevisionError{}
	for _, format := range imageformat.Names() {
		if e := findDiffering(j.p.options.Revisions.OfFormat(format), codecs); e != nil {
			refused[format] = e
		}
	}
	if len(refused) > 0 {
		j.refused = refused
	}
	j.oversize = findDiffering(j.p.options.Revisions.OfOversize(), codecs)
}

// findDiffering is the error about the first unit of which others are pinned; nil: about none.
func findDiffering(own, pinned revision.Set) *RevisionError {
	units := own.Differing(pinned)
	if len(units) == 0 {
		return nil
	}
	return &RevisionError{Unit: units[0], Pinned: pinned[units[0]], Found: own[units[0]]}
}

// Refuses reports whether there are files that the job does not make.
func (j *Job) Refuses() bool { return j.refused != nil || j.oversize != nil }

// checkFormat is a *RevisionError if the job must not decode a file. What the decoder would make of it is a byte too, a
// verdict as much as a pixel.
func (j *Job) checkFormat(d *codec.Decoder, file []byte) error {
	if j.refused == nil {
		return nil
	}
	if err := j.refused[d.Format(file)]; err != nil {
		return err
	}
	return nil
}
