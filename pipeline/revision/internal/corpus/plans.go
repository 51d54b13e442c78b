package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// values are what arguments are drawn from, by name. An op takes those that it knows; a plan that it refuses is drawn
// again.
var values = map[string][]string{
	"all_ops":          {"true", "false"},
	"alpha":            {"0.5", "1", "30", "[20, 60]", "80"},
	"antialias":        {"false", "true"},
	"blended":          {"true", "false"},
	"border_size":      {"1", "3"},
	"bits":             {"1", "3", "7", "8"},
	"brightness":       {"0.4", "[0.1, 2.5]", "[0, 0]", "[0.9, 1.1]"},
	"center":           {"[10, 20]", "[0, 0]", "[-5, 70]"},
	"chain_depth":      {"-1", "1", "3"},
	"clip":             {"true"},
	"contrast":         {"0.4", "[0.1, 2.5]", "[0, 0]", "[0.5, 1.5]"},
	"degrees":          {"30", "[-180, 180]", "[90, 90]", "[0, 1]", "[180, 180]", "[45, 46]"},
	"depth":            {"1", "2", "8"},
	"dialect":          {`"tensor"`},
	"distortion_scale": {"0.1", "0.5", "1"},
	"expand":           {"true", "false"},
	"fill":             {"0", "7", "[1, 200, 30]", "255"},
	"generation":       {"1", "2"},
	"groups": {
		`[[["Rotate", 0.5, 9]], [["ShearX", 1, 7], ["SolarizeAdd", 0.8, 5]], [["TranslateYRel", 1, 9], ["Color", 1, 6]]]`,
		`[[["PosterizeIncreasing", 1, 4], ["Contrast", 0.7, 8], ["Equalize", 0.6, 1]], [["TranslateX", 1, 4]]]`,
		`[[["Desaturate", 1, 10]], [["GaussianBlurRand", 1, 10]], [["GaussianBlur", 1, 6]]]`,
	},
	"hue":                 {"0.1", "[-0.5, 0.5]", "[0.2, 0.2]", "[-0.05, 0.05]"},
	"interpolation":       {`"nearest"`, `"nearest-exact"`, `"bilinear"`, `"bicubic"`, `"lanczos"`, `"box"`, `"hamming"`},
	"kernel_size":         {"3", "[5, 9]", "23", "[1, 3]"},
	"layers":              {"1", "3", "0"},
	"longest":             {"0", "0.3", "1"},
	"magnitude":           {"0", "5", "9", "20"},
	"max_size":            {"40", "90", "64"},
	"mean":                {"0", "0.2", "-0.1"},
	"min_size":            {"16", "[20, 40]", "[33]", "30"},
	"mixture_width":       {"1", "3"},
	"most_magnitude":      {"5", "10"},
	"num_magnitude_bins":  {"31", "10", "50"},
	"num_ops":             {"1", "2", "4"},
	"num_output_channels": {"3"},
	"ops": {
		`[["Rotate", 1, 9], ["ShearX", 1, 7], ["SolarizeAdd", 0.8, 5], ["Equalize", 1, 3]]`,
		`[["GaussianBlurRand", 1, 9], ["TranslateYRel", 1, 7], ["SharpnessIncreasing", 0.8, 5]]`,
	},
	"p":                   {"1", "0.5", "0.9", "1", "[1, 2]"},
	"pad_if_needed":       {"true"},
	"padding":             {"3", "[1, 2, 3, 4]", "[0, 5]", "8"},
	"padding_mode":        {`"constant"`, `"edge"`, `"reflect"`, `"symmetric"`},
	"policy":              {`"imagenet"`, `"cifar10"`, `"svhn"`},
	"probe":               {"0", "1"},
	"quality":             {"[5, 95]", "50", "[1, 100]"},
	"random":              {"true", "false"},
	"random_aspect_prob":  {"0", "0.5", "1"},
	"random_aspect_range": {"[0.8, 1.3]"},
	"random_scale_area":   {"true", "false"},
	"random_scale_prob":   {"0", "0.5", "1"},
	"random_scale_range":  {"[0.5, 1.4]"},
	"ratio":               {"[0.5, 2]", "[1, 1]", "[0.3, 3.3]"},
	"saturation":          {"0.4", "[0, 3]", "[0.5, 1.5]"},
	"scale":               {"[0.08, 1]", "[0.5, 1.5]", "[0.02, 0.33]", "[0.9, 0.9]"},
	"scale_range":         {"[0.1, 2]", "[0.9, 1.1]"},
	"severity":            {"1", "3", "10"},
	"sharpness_factor":    {"0", "0.5", "1.7", "4"},
	"shear":               {"10", "[-20, 20]", "[-9, 9, -30, 30]"},
	"side_range":          {"[1, 4]", "[1.5, 1.5]"},
	"sigma":               {"0.1", "[0.1, 2]", "[1, 2]", "5", "0.3"},
	"size":                {"24", "[31, 17]", "[20]", "[48, 40]", "[1, 1]", "64"},
	"std":                 {"0.5", "null", "0", "100"},
	"target_size":         {"[30, 30]", "[50, 20]"},
	"threshold":           {"0", "100", "128.5", "255", "0.85"},
	"transforms": {
		`[{"op": "RandomHorizontalFlip"}, {"op": "ColorJitter", "brightness": 0.4}]`, `[{"op": "Resize", "size": [30, 30]}]`,
		`[{"op": "RandomRotation", "degrees": 20}, {"op": "RandomInvert"}]`,
	},
	"translate":       {"[0.1, 0.3]", "[0, 0]", "[1, 1]"},
	"translate_const": {"20", "250"},
	"translate_pct":   {"0.2", "0.45"},
	"value":           {"0", "[0.1, 0.2, 0.3]", `"random"`},
	"vertical_flip":   {"true"},
}

// plansOfOp is how many plans are drawn of each op.
const plansOfOp = 80

// opCases are plans of one op, and of several.
func opCases(seed uint64) []Case {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same each time
	var cases []Case
	var all [][]string // by op
	for _, name := range ops() {
		drawn := draw(r, name)
		for _, op := range drawn {
			cases = append(cases, newCase(name, smallFolder, 2, op))
		}
		all = append(all, drawn)
	}
	for range 800 {
		var chain []string
		for range 2 + r.IntN(3) {
			drawn := all[r.IntN(len(all))]
			chain = append(chain, drawn[r.IntN(len(drawn))])
		}
		if c := newCase("several", smallFolder, 1, chain...); parses(c.Plan) {
			cases = append(cases, c)
		}
		chain = append(chain, `{"op": "CenterCrop", "size": [40, 36]}`)
		m := newCase("masks", maskedFolder, 1, chain...)
		m.Masks = masksFolder
		if m.Plan = with(m.Plan, `"masks": {}, "fields": ["image", "mask", "label"]`); parses(m.Plan) {
			cases = append(cases, m)
		}
	}
	return cases
}

// ops are the names of all ops, from the table of units.
func ops() (all []string) {
	for name, n := range revision.Build() {
		if op, is := strings.CutPrefix(name, revision.Op("")); is && n > 0 && !strings.Contains(refusal(`{"op": "`+op+`"}`), "no such transform") {
			all = append(all, op)
		}
	}
	slices.Sort(all)
	return all
}

// draw draws an op with arguments.
func draw(r *rand.Rand, op string) (drawn []string) {
	needed := neededBy(op)
	known := knownTo(op, needed)
	for range 40 * plansOfOp {
		given := map[string]string{}
		for _, name := range known {
			if r.IntN(2) == 0 || slices.Contains(needed, name) {
				given[name] = values[name][r.IntN(len(values[name]))]
			}
		}
		text := spell(op, given)
		if parses(planOf(text)) && !slices.Contains(drawn, text) {
			drawn = append(drawn, text)
		}
		if len(drawn) == plansOfOp {
			break
		}
	}
	return drawn
}

// spell writes an op as plans have it.
func spell(op string, given map[string]string) string {
	members := []string{fmt.Sprintf(`"op": %q`, op)}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		members = append(members, fmt.Sprintf("%q: %s", name, given[name]))
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// neededBy are the arguments that an op cannot do without.
func neededBy(op string) (needed []string) {
	given := map[string]string{}
	for {
		var e *batch.PlanError
		_, err := pipeline.ParsePlan(planOf(spell(op, given)))
		if !errors.As(err, &e) {
			return needed
		}
		name := e.Field[strings.LastIndex(e.Field, ".")+1:]
		if given[name] != "" || len(values[name]) == 0 {
			return needed
		}
		given[name], needed = values[name][0], append(needed, name)
	}
}

// knownTo are the arguments that an op knows, in order.
func knownTo(op string, needed []string) (known []string) {
	given := map[string]string{}
	for _, name := range needed {
		given[name] = values[name][0]
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		was, there := given[name]
		given[name] = values[name][0]
		if !strings.Contains(refusal(spell(op, given)), "no such argument") {
			known = append(known, name)
		}
		if given[name] = was; !there {
			delete(given, name)
		}
	}
	return known
}

// refusal is what is wrong with an op; empty: nothing.
func refusal(op string) string {
	if _, err := pipeline.ParsePlan(planOf(op)); err != nil {
		return err.Error()
	}
	return ""
}

func parses(plan []byte) bool {
	_, err := pipeline.ParsePlan(plan)
	return err == nil
}

func planOf(ops ...string) json.RawMessage {
	return json.RawMessage(`{"seed": 3, "shuffle": true, "on_error": "skip", "transforms": [` + strings.Join(ops, ", ") + "]}")
}

// with adds members to a plan.
func with(plan json.RawMessage, members string) json.RawMessage {
	return json.RawMessage(strings.Replace(string(plan), "{", "{"+members+", ", 1))
}

// newCase is a plan of ops on a folder whose files are of every format, or all of one.
func newCase(name, folder string, epochs int, ops ...string) Case {
	return Case{Name: name, Folder: folder, Plan: planOf(ops...), Epochs: epochs}
}

// units are those that a case uses, sorted.
func (c *Case) units() []string {
	build := revision.Build()
	all := names(build.Of(usesOf(c.Plan)))
	for _, format := range Formats {
		mixed := c.Folder == smallFolder || c.Folder == turnedFolder
		if c.Folder == format || mixed || c.Folder == maskedFolder && format == "jpeg" || c.Masks != "" && format == "png" {
			all = append(all, names(build.OfFormat(format))...)
		}
	}
	if c.Folder == oversizeFolder {
		all = append(all, names(build.OfOversize())...)
		all = append(all, names(build.OfFormat("jpeg"))...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// usesOf is what decides which units a plan uses; of one that is refused nothing.
func usesOf(text json.RawMessage) revision.Plan {
	plan, err := pipeline.ParsePlan(text)
	if err != nil {
		return revision.Plan{}
	}
	return plan.Uses()
}

// codecCases decode all files of each format: whole, in part with and without an index, with other limits, turned, as
// views.
func codecCases() []Case {
	var cases []Case
	for _, format := range append(slices.Clone(Formats), turnedFolder) {
		whole := newCase(format, format, 1)
		crop := newCase(format+" in part", format, 2, `{"op": "RandomResizedCrop", "size": [20, 30]}`)
		again := newCase(format+" by index", format, 2, `{"op": "RandomResizedCrop", "size": [20, 30], "scale": [0.05, 0.2]}`)
		again.Index = true
		limits := newCase(format+" within limits", format, 1)
		limits.Plan = with(limits.Plan, `"limits": {"encoded_bytes": 3000, "side": 40, "pixels": 900, "scans": 3, "scan_blocks": 200}`)
		turned := newCase(format+" turned", format, 1)
		turned.Plan = with(turned.Plan, `"apply_exif": true`)
		substitute := newCase(format+" with others in place", format, 1, `{"op": "CenterCrop", "size": [30, 30]}`)
		substitute.Plan = json.RawMessage(strings.Replace(string(substitute.Plan), `"skip"`, `"substitute"`, 1))
		views := newCase(format+" in views", format, 1, `{"op": "RandomCrop", "size": 16, "pad_if_needed": true}`)
		views.Plan = json.RawMessage(`{"seed": 5, "on_error": "skip", "views": [[{"op": "RandomCrop", "size": 16, "pad_if_needed": true}],
			[{"op": "RandomCrop", "size": [9, 40], "pad_if_needed": true}]]}`)
		cases = append(cases, whole, crop, again, limits, turned, substitute, views)
	}
	return cases
}

// oversizeCases make pictures on whose way larger ones lie than any that is made.
func oversizeCases() []Case {
	resize := func(size int) string { return fmt.Sprintf(`{"op": "Resize", "size": %d}`, size) }
	const crop = `{"op": "CenterCrop", "size": 50}`
	var cases []Case
	for _, chain := range [][]string{
		{resize(256), crop},
		{resize(300)},
		{`{"op": "Resize", "size": 256, "interpolation": "nearest"}`, `{"op": "RandomVerticalFlip", "p": 1}`, crop},
		{`{"op": "Resize", "size": 256, "interpolation": "bicubic", "dialect": "tensor"}`, `{"op": "RandomCrop", "size": 40}`},
		{resize(280), `{"op": "Pad", "padding": 3}`, `{"op": "RandomHorizontalFlip"}`, crop},
		{resize(256), `{"op": "ColorJitter", "brightness": 0.4}`, crop},
		{resize(256), resize(200), crop},
		{`{"op": "RandomApply", "transforms": [` + resize(256) + `]}`, crop},
		{`{"op": "RandomChoice", "transforms": [` + resize(256) + ", " + resize(60) + `]}`, `{"op": "RandomInvert"}`, crop},
		{resize(300), crop},
		{crop, resize(30)},
	} {
		c := newCase("oversize", oversizeFolder, 2, chain...)
		small := newCase("oversize within limits", oversizeFolder, 2, chain...)
		small.Plan = with(small.Plan, `"limits": {"pixels": 9000}`)
		cases = append(cases, c, small)
	}
	return cases
}
