package pipeline

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// Ops are the names of all ops of a plan, those inside others too, sorted and each once.
func (p *Plan) Ops() []string {
	names := map[string]bool{}
	for _, c := range append(p.Views[:len(p.Views):len(p.Views)], p.Transforms) {
		var tree any
		if json.Unmarshal(canonical(c), &tree) == nil {
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

// CodecUnits returns the units of a build that decode files, of all formats.
func CodecUnits(build revision.Set) revision.Set {
	all := revision.Set{}
	for _, format := range codec.Formats() {
		maps.Copy(all, build.OfFormat(format))
	}
	return all
}

// Pin has the job make samples only with codecs of these revisions: a want that meets a file of a format of which this build has another one ends
// with *RevisionError. It is called before the first want. A unit that codecs does not have is of revision 0.
func (j *Job) Pin(codecs revision.Set) {
	refused := map[string]*RevisionError{}
	for _, format := range codec.Formats() {
		own := j.p.options.Revisions.OfFormat(format)
		if units := own.Differing(codecs); len(units) > 0 {
			refused[format] = &RevisionError{Unit: units[0], Pinned: codecs[units[0]], Found: own[units[0]]}
		}
	}
	if len(refused) > 0 {
		j.refused = refused
	}
}

// Refuses reports whether there is a format whose files the job does not make.
func (j *Job) Refuses() bool { return j.refused != nil }

// refusal is a *RevisionError if the job must not decode a file. What the decoder would make of it is a byte too, a verdict as much as a pixel.
func (j *Job) refusal(d *codec.Decoder, file []byte) error {
	if j.refused == nil {
		return nil
	}
	if err := j.refused[d.Format(file)]; err != nil {
		return err
	}
	return nil
}
