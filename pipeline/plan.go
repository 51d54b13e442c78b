package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/resize"
	"github.com/feedwater-io/feedwater/pipeline/spelling"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// Plan says what to do to each sample. It is data, never code: it comes as JSON (docs/plan.md), its members have defaults, and
// together with a batch name and the machine's numerics it decides every byte of a batch.
type Plan struct {
	// Version of this format; 1.
	Version int    `json:"version"`
	Source  Source `json:"source"`
	// Seed of the order and of all draws.
	Seed    uint64  `json:"seed"`
	Shuffle Shuffle `json:"shuffle"`
	// Reference names whose pixels are reproduced: "pillow-13" or "pillow-12".
	Reference  resize.Reference `json:"reference"`
	Transforms transform.Chain  `json:"transforms"`
	// Views are transforms in place of Transforms: each makes a picture of its own of the sample, with draws of its own.
	Views []transform.Chain `json:"views,omitempty"`
	// Masks are pictures of the same names as those of Source, whose pixels are numbers and are moved as those are: the field "mask".
	Masks *Masks `json:"masks,omitempty"`
	// Fields of a batch: "image", "label", "mask", "image.draws", and values that the data has besides. Every batch has
	// "index" too.
	Fields []string `json:"fields"`
	// ApplyEXIF turns pictures as their EXIF data says before anything else. Plans without it are as they were before it existed.
	ApplyEXIF bool `json:"apply_exif,omitempty"`
	// OnError is "raise", "skip" or "substitute".
	OnError string       `json:"on_error"`
	Limits  codec.Limits `json:"limits"`
}

// Source names the data.
type Source struct {
	// Root is the name a node serves a folder under; empty on the machine that has the folder.
	Root string `json:"root"`
	// Path is the folder below the root.
	Path filename.Name `json:"path"`
	// Fingerprint pins the snapshot. Empty: whatever is there.
	Fingerprint string `json:"fingerprint"`
	// AllowEmpty takes class folders without pictures as classes without samples, as ImageFolder does with allow_empty=True. Without it they are
	// an error.
	AllowEmpty bool `json:"allow_empty,omitempty"`
	// Table is the SHA-256, in hex, of a list that the trainer has given the node: samples are what it lists below the folder. Empty: the folder
	// itself says. The list says where the samples are found, as Root and Path do, and the fingerprint what they are.
	Table string `json:"table,omitempty"`
	// Label says where labels are, of lists, tables, tar and Parquet files: see layout.Choice. As Table it says where to find what the fingerprint pins.
	Label string `json:"label,omitempty"`
	// Image is the column of Parquet files that has the pictures. As Table it says where to find what the fingerprint pins. Empty: the one that the
	// files tell.
	Image string `json:"image,omitempty"`
	// Layout is how the data is laid out, see dataset.Columns. As Table it says where to find what the fingerprint pins. Empty: as names tell.
	Layout string `json:"layout,omitempty"`
	// Values, with commas between them, are the fields of the plan that are values of the data.
	Values string `json:"-"`
}

// Columns say what is listed of each sample of the source.
func (s *Source) Columns() dataset.Columns {
	return dataset.Columns{Label: s.Label, Values: s.Values, Image: s.Image, Layout: s.Layout}
}

// What a batch does with a sample that does not decode.
const (
	Raise      = "raise"      // the batch fails
	Skip       = "skip"       // a hole: zeros, and an entry in Result.Errors
	Substitute = "substitute" // another sample, drawn by name, stands in its place
)

// maxPlanBytes bounds the plans that are looked at.
const maxPlanBytes = 1 << 20

// ParsePlan reads a plan, fills in defaults and checks it. Errors are *PlanError.
func ParsePlan(text []byte) (*Plan, error) {
	if len(text) > maxPlanBytes {
		return nil, &batch.PlanError{Field: "plan", Message: fmt.Sprintf("%d bytes; the limit is %d", len(text), maxPlanBytes)}
	}
	p := &Plan{
		Version:   1,
		Reference: resize.Pillow13,
		Fields:    []string{"image", "label"},
		OnError:   Raise,
		Limits:    codec.DefaultLimits(),
	}
	if err := p.decodeText(text); err != nil {
		return nil, err
	}
	// The index is always there; asking for it is no difference.
	p.Fields = slices.DeleteFunc(p.Fields, func(f string) bool { return f == "index" })
	return p, p.checkFields()
}

// decodeText reads the members that text has.
func (p *Plan) decodeText(text []byte) error {
	type plan Plan // without methods, and with the transforms still to be parsed
	raw := struct {
		*plan
		Transforms []json.RawMessage   `json:"transforms"`
		Views      [][]json.RawMessage `json:"views"`
	}{plan: (*plan)(p)}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&raw); err != nil {
		return jsonError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &batch.PlanError{Field: "plan", Message: "text after the JSON object"}
	}
	chain, err := transform.Parse(raw.Transforms)
	if err != nil {
		return transformError("transforms", err)
	}
	p.Transforms = chain
	return p.parseViews(raw.Views)
}

// transformError is the PlanError of what package transform says of a transform in the list that field names.
func transformError(field string, err error) error {
	var e *transform.PlanError
	if !errors.As(err, &e) {
		return &batch.PlanError{Field: field, Message: err.Error()}
	}
	message := e.Problem
	if e.Op != "" {
		message = e.Op + ": " + message
	}
	return &batch.PlanError{Field: field + strings.TrimPrefix(e.Field(), "transforms"), Message: message, Nearest: e.Nearest}
}

// jsonError turns what encoding/json says into a PlanError.
func jsonError(err error) error {
	var wrong *batch.PlanError
	if errors.As(err, &wrong) {
		return wrong
	}
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		return &batch.PlanError{Field: t.Field, Message: fmt.Sprintf("a JSON %s where a %s belongs", t.Value, t.Type)}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return &batch.PlanError{Field: name, Message: "no such member", Nearest: spelling.Nearest(name, planMembers)}
	}
	return &batch.PlanError{Field: "plan", Message: err.Error()}
}

// planMembers are the names of a plan's members, and of those of the objects in it that are no transforms.
var planMembers = slices.Compact(slices.Sorted(slices.Values(membersOf(reflect.TypeFor[Plan]()))))

// membersOf are the names that encoding/json has for the fields of a type.
func membersOf(t reflect.Type) (names []string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[transform.Chain]() {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
		if len(f.Index) == 1 && !f.Anonymous {
			names = append(names, membersOf(f.Type)...)
		}
	}
	return names
}

func (p *Plan) checkFields() error {
	oneOf := func(field, got string, want ...string) error {
		if slices.Contains(want, got) {
			return nil
		}
		return &batch.PlanError{Field: field, Message: fmt.Sprintf("%q is none of %s", got, strings.Join(want, ", "))}
	}
	if p.Version != 1 {
		return &batch.PlanError{Field: "version", Message: fmt.Sprintf("%d is not supported", p.Version), Nearest: "1"}
	}
	if err := oneOf("reference", string(p.Reference), string(resize.Pillow13), string(resize.Pillow12)); err != nil {
		return err
	}
	if err := oneOf("on_error", p.OnError, Raise, Skip, Substitute); err != nil {
		return err
	}
	if err := p.checkNames(); err != nil {
		return err
	}
	if err := p.Source.checkSource("source"); err != nil {
		return err
	}
	if err := p.checkMaskSource(); err != nil {
		return err
	}
	if err := p.checkMasks(); err != nil {
		return err
	}
	if err := p.checkDraws(); err != nil {
		return err
	}
	if err := p.Limits.Check(); err != nil {
		return &batch.PlanError{Field: "limits", Message: err.Error()}
	}
	if len(p.Views) > 0 && len(p.Transforms.Infos()) > 0 {
		return &batch.PlanError{Field: "views", Message: "stand in place of transforms: put those into each view"}
	}
	for _, c := range append(p.Views[:len(p.Views):len(p.Views)], p.Transforms) {
		if h, w, fixed := c.OutputSize(); fixed && int64(h)*int64(w) > p.Limits.Pixels {
			return &batch.PlanError{Field: "transforms", Message: fmt.Sprintf("every result would have %d×%d pixels, over limits.pixels", w, h)}
		}
	}
	return nil
}

// wantsField reports whether batches have a field.
func (p *Plan) wantsField(name string) bool { return slices.Contains(p.Fields, name) }

func (s *Source) checkSource(field string) error {
	if f := s.Fingerprint; f != "" {
		if b, err := hex.DecodeString(f); err != nil || len(b) != sha256.Size {
			return &batch.PlanError{Field: field + ".fingerprint", Message: "not a SHA-256 in hex"}
		}
	}
	if err := dataset.CheckLayout(s.Layout); err != nil {
		return &batch.PlanError{Field: field + ".layout", Message: err.Error()}
	}
	if t := s.Table; t != "" {
		if b, err := hex.DecodeString(t); err != nil || len(b) != sha256.Size || t != strings.ToLower(t) {
			return &batch.PlanError{Field: field + ".table", Message: "not a SHA-256 in hex"}
		}
	}
	if l := s.Label; l != "" && !isValueName(strings.TrimPrefix(l, "json:")) {
		return &batch.PlanError{Field: field + ".label", Message: fmt.Sprintf("%.99q names no member and no column", l), Nearest: "json:label"}
	}
	return nil
}

// Canonical returns the plan as JSON with every member present and in order, but for views, masks and apply_exif where there are none.
func (p *Plan) Canonical() []byte { return marshalCanonical(p) }

// Hash is the SHA-256, in hex, of what decides a batch's bytes besides its name: the canonical plan without the place where this
// machine finds the data. The fingerprint must be pinned.
func (p *Plan) Hash() string {
	q := *p
	q.Source.Root, q.Source.Path, q.Source.Table, q.Source.Label = "", "", "", ""
	q.Source.Image, q.Source.Layout = "", ""
	q.Masks = q.Masks.withoutPlace()
	return digestOf("plan", q)
}

// OrderHash is the SHA-256, in hex, of what decides which sample stands at which position.
func (p *Plan) OrderHash() string {
	return digestOf("order", struct {
		Fingerprint string  `json:"fingerprint"`
		Seed        uint64  `json:"seed"`
		Shuffle     Shuffle `json:"shuffle"`
	}{p.Source.Fingerprint, p.Seed, p.Shuffle})
}

// PixelHash is the SHA-256, in hex, of what decides what is made of a sample.
func (p *Plan) PixelHash() string {
	q := *p
	q.Source, q.Shuffle, q.Masks = Source{}, 0, q.Masks.withoutPlace()
	return digestOf("pixels", q)
}

func digestOf(what string, v any) string {
	h := sha256.New()
	fmt.Fprintf(h, "feedwater %s 1\x00", what)
	h.Write(marshalCanonical(v))
	return hex.EncodeToString(h.Sum(nil))
}

func marshalCanonical(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("a plan cannot be written as JSON: " + err.Error()) // no member can fail
	}
	return b
}
