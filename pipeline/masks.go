package pipeline

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// maskField is the array of the masks: one number for each pixel, moved as the picture is.
const maskField = "mask"

// checkMaskSource checks where masks lie, if there are any.
func (p *Plan) checkMaskSource() error {
	if p.Masks == nil {
		return nil
	}
	if err := p.Masks.checkSource("masks"); err != nil {
		return err
	}
	switch {
	case p.Masks.Table != "" || p.Source.Table != "":
		return &batch.PlanError{Field: "masks", Message: "go with a folder, not with a table"}
	case p.Masks.Label != "":
		return &batch.PlanError{Field: "masks.label", Message: "masks have no labels"}
	case p.Masks.Layout != "":
		return &batch.PlanError{Field: "masks.layout", Message: "masks lie in folders"}
	case p.Masks.Image != "":
		return &batch.PlanError{Field: "masks.image", Message: "masks lie in folders, which have no columns"}
	}
	return p.Masks.checkNumbers()
}

// checkMasks looks at what a plan says of masks.
func (p *Plan) checkMasks() error {
	wanted := p.wantsField(maskField)
	switch {
	case p.Masks == nil && !wanted:
		return nil
	case p.Masks == nil:
		return &batch.PlanError{Field: "masks", Message: "are wanted by fields, and are missing"}
	case p.Masks.AllowEmpty:
		return &batch.PlanError{Field: "masks.allow_empty", Message: "is said of masks in source too"}
	case !wanted || !p.wantsField(imageField):
		return &batch.PlanError{Field: "fields", Message: "masks go with pictures", Nearest: `["image", "mask"]`}
	case p.ApplyEXIF:
		return &batch.PlanError{Field: "apply_exif", Message: "turns pictures, and not their masks"}
	}
	for k, c := range p.Views {
		if _, err := c.ForMasks(); err != nil {
			return transformError(fmt.Sprintf("views[%d]", k), err)
		}
	}
	if len(p.Views) > 0 {
		return nil // each is of one size
	}
	if _, err := p.Transforms.ForMasks(); err != nil {
		return transformError("transforms", err)
	}
	if _, _, fixed := p.Transforms.OutputSize(); !fixed {
		message := "the results differ in size, which is not offered with masks: end them with a size for all"
		return &batch.PlanError{Field: "transforms", Message: message, Nearest: `{"op": "CenterCrop", "size": [512, 512]}`}
	}
	return nil
}

// masks are the masks of a snapshot's pictures.
type masks struct {
	snapshot *dataset.Snapshot
	root     *bulkhead.Root
	of       []int32 // by the picture's index
	numbers  *numbering
	files    sync.Pool
}

// PrepareMasked is Prepare for a plan with masks, which are those of another snapshot: of each picture the file of the same name but for its
// ending and the plan's suffixes, the PNG if there are others. A picture that has none, or two, is an error that wraps dataset.ErrLayout.
func (p *Pipeline) PrepareMasked(plan *Plan, s, of *dataset.Snapshot) (*Job, error) {
	pinned := *plan
	source := *plan.Masks
	if source.Fingerprint != "" && source.Fingerprint != of.Fingerprint() {
		return nil, &batch.PlanError{Field: "masks.fingerprint", Message: "the masks here are " + of.Fingerprint() + ", the plan pins " + source.Fingerprint}
	}
	source.Fingerprint = of.Fingerprint()
	pinned.Masks = &source
	m, err := matchMasks(s, of, &source)
	if err != nil {
		return nil, err
	}
	j, err := p.Prepare(&pinned, s)
	if err != nil {
		return nil, err
	}
	m.root = p.rootOf(of)
	j.masks = m
	if m.root != j.root {
		j.roots = append(j.roots, m.root)
	}
	return j, nil
}

// matchMasks finds the mask of each picture.
func matchMasks(s, of *dataset.Snapshot, plan *Masks) (*masks, error) {
	if err := dataset.CheckKeys(max(s.Len(), of.Len())); err != nil {
		return nil, err
	}
	stems, err := masksByStem(of, plan.Suffix)
	if err != nil {
		return nil, err
	}
	var room [4096]byte
	m := &masks{snapshot: of, of: make([]int32, s.Len()), numbers: plan.newNumbering()}
	for i := range m.of {
		line, err := s.At(i, room[:])
		if err != nil {
			return nil, err
		}
		name, suffixed := strings.CutSuffix(stemOf(line.Key), plan.PictureSuffix)
		at, there := stems[name]
		switch {
		case !suffixed:
			return nil, fmt.Errorf("%w with masks: the name of %s does not end with %q, the suffix of pictures", dataset.ErrLayout,
				path.Join(s.Path(), string(line.Key)), plan.PictureSuffix)
		case at.twin != "":
			return nil, fmt.Errorf("%w with masks: %s has two, %s and %s: remove one of them", dataset.ErrLayout,
				path.Join(s.Path(), string(line.Key)), path.Join(of.Path(), at.key), path.Join(of.Path(), at.twin))
		case !there:
			return nil, fmt.Errorf("%w with masks: %s has no mask: there is no %s.png, nor another picture of that name. Where names go on otherwise "+
				"than those of pictures, say how: masks=feedwater.Masks(folder, suffix=…, picture_suffix=…)", dataset.ErrLayout, path.Join(s.Path(), string(line.Key)), path.Join(of.Path(), name+plan.Suffix))
		}
		m.of[i] = at.index
	}
	return m, nil
}

// named is the mask of a name: the PNG, where there are other files beside it. twin is another file that could be it as well.
type named struct {
	index     int32
	key, twin string
}

// masksByStem finds the mask of every name: files whose names go on with the suffix.
func masksByStem(of *dataset.Snapshot, suffix string) (map[string]named, error) {
	stems := make(map[string]named, of.Len())
	var room [4096]byte
	for i := range of.Len() {
		line, err := of.At(i, room[:])
		if err != nil {
			return nil, err
		}
		key := string(line.Key)
		name, suffixed := strings.CutSuffix(stemOf(line.Key), suffix)
		if !suffixed {
			continue
		}
		switch before, there := stems[name]; {
		case !there || isPNG(key) && !isPNG(before.key):
			stems[name] = named{index: int32(i), key: key}
		case isPNG(key) == isPNG(before.key):
			before.twin = key
			stems[name] = before
		}
	}
	return stems, nil
}

func isPNG(key string) bool { return strings.EqualFold(path.Ext(key), ".png") }

// stemOf is a key without its ending.
func stemOf(key []byte) string { return string(key[:len(key)-len(path.Ext(string(key)))]) }

// maskFile is an encoded mask. The zero value stands for none.
type maskFile struct {
	key  string
	data []byte
}

// readMask reads the mask of a picture, if the job has masks. An error is a *ReadError, or a verdict on the picture that s describes.
// release gives the memory back.
func (k *worker) readMask(j *Job, ref batch.Ref, s *dataset.Sample) (f maskFile, release func(), err error) {
	if j.masks == nil {
		return maskFile{}, func() {}, nil
	}
	room, _ := j.masks.files.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	release = func() { j.masks.files.Put(room) }
	at := int(j.masks.of[ref.Index])
	line, err := j.masks.snapshot.At(at, nil)
	if err != nil {
		return f, release, &ReadError{Index: ref.Index, Cause: err}
	}
	f.key = string(line.Key)
	if err := j.plan.Limits.CheckFile(line.Size); err != nil {
		return f, release, j.verdictOn(ref, s, f.refuseMask(err))
	}
	*room, err = k.readFile(j.masks.root, j.masks.snapshot, at, &line, *room)
	if errors.Is(err, errGone) {
		return f, release, err
	} else if err != nil {
		return f, release, &ReadError{Index: ref.Index, Key: f.key, Cause: err}
	}
	f.data = *room
	return f, release, nil
}

// refuseMask is an error about the mask.
func (f *maskFile) refuseMask(err error) error {
	return &transform.OpError{Op: maskField, Cause: fmt.Errorf("%s: %w", f.key, err)}
}

// makeMask makes the mask of a sample whose picture was of size from and whose chain was drawn.
func (d *decoder) makeMask(want *Want, f *maskFile, from size, r *renderer, dst []byte) error {
	if d.maskCodec == nil {
		d.maskCodec = codec.NewDecoder(d.level)
	}
	if err := want.job.checkFormat(d.maskCodec, f.data); err != nil {
		return err
	}
	parse, numbers := d.maskCodec.ParseMask, want.job.masks.numbers
	if numbers.ofColours() {
		parse = d.maskCodec.ParseColours
	}
	w, h, err := parse(f.data, want.job.plan.Limits)
	if err != nil {
		return f.refuseMask(err)
	}
	if (size{w, h}) != from {
		return f.refuseMask(fmt.Errorf("has %d×%d pixels, its picture %d×%d", w, h, from.w, from.h))
	}
	if r.Region().Empty() {
		if err := d.maskCodec.Check(); err != nil {
			return f.refuseMask(err)
		}
	}
	n := r.countBytes()
	if cap(d.wide) < n {
		d.wide = make([]byte, n)
	}
	src := &d.numbered
	*src = numberedSource{src: d.maskCodec, numbers: numbers, row: src.row}
	if err := d.render(want, r, src.orItself(), d.wide[:n]); errors.Is(err, ErrCancelled) {
		return err
	} else if err = errors.Join(err, src.unknown); err != nil {
		return f.refuseMask(err)
	}
	for i := range dst {
		dst[i] = d.wide[3*i]
	}
	return nil
}
