package server

import (
	"encoding/json"
	"fmt"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/transform"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// All conversion between the pipeline's values and the wire's.

func toName(n *pb.Name) (batch.Name, error) {
	switch s := n.GetSamples().(type) {
	case *pb.Name_Range:
		name := batch.Name{Epoch: n.Epoch, Position: s.Range.GetPosition(), Count: int(s.Range.GetCount()), Policy: n.Policy}
		return name, batch.CheckCount(name.Count)
	case *pb.Name_List:
		return toList(n, s.List)
	}
	return batch.Name{}, &batch.PlanError{Field: "name", Message: "neither a range nor a list"}
}

func toList(n *pb.Name, l *pb.List) (batch.Name, error) {
	indices, repeats := l.GetIndices(), l.GetRepeats()
	if len(indices) != len(repeats) {
		return batch.Name{}, &batch.PlanError{Field: "name.list", Message: fmt.Sprintf("%d indices and %d repeats", len(indices), len(repeats))}
	}
	if err := batch.CheckCount(len(indices)); err != nil {
		return batch.Name{}, err
	}
	name := batch.Name{Epoch: n.Epoch, List: make([]batch.Ref, len(indices)), Policy: n.Policy}
	for i := range indices {
		name.List[i] = batch.Ref{Index: indices[i], Repeat: repeats[i]}
	}
	return name, nil
}

func fromHeader(r *pipeline.Result, count int) *pb.Header {
	h := &pb.Header{Crc32C: r.CRC32C, CoreSeconds: r.CoreSeconds, Index: fromIndexUse(r.Index)}
	for _, f := range r.Fields {
		field := fromField(f)
		field.Shape = append([]uint64{uint64(count)}, field.Shape...)
		field.Offset = uint64(f.Offset)
		if f.Bytes == 0 && r.Sizes != nil {
			setRagged(field, r.Sizes)
		}
		h.Fields = append(h.Fields, field)
	}
	for i := range r.Errors {
		h.Errors = append(h.Errors, fromSampleError(&r.Errors[i]))
	}
	return h
}

func fromIndexUse(u pipeline.IndexUse) *pb.IndexUse {
	return &pb.IndexUse{
		Hits: uint32(u.Hits), Copies: uint32(u.Copies), Misses: uint32(u.Misses),
		MissingCopies: uint32(u.MissingCopies), MissingCopyBytes: uint64(u.MissingCopyBytes),
		MadeCopies: uint32(u.MadeCopies), Kept: uint32(u.Kept),
	}
}

// setRagged describes samples that lie behind each other and differ in size.
func setRagged(f *pb.Field, sizes [][2]int) {
	f.RaggedOffsets = make([]uint64, 1, len(sizes)+1)
	at := uint64(0)
	for _, s := range sizes {
		at += uint64(s[0]) * uint64(s[1]) * 3
		f.RaggedOffsets = append(f.RaggedOffsets, at)
		f.RaggedShapes = append(f.RaggedShapes, uint32(s[0]), uint32(s[1]), 3)
	}
}

// fromField describes a field of one sample.
func fromField(f batch.Field) *pb.Field {
	field := &pb.Field{Name: f.Name, Dtype: f.DType}
	for _, d := range f.Shape {
		field.Shape = append(field.Shape, uint64(d))
	}
	return field
}

func fromSampleError(e *pipeline.SampleError) *pb.SampleError {
	s := &pb.SampleError{
		Offset: uint32(e.Offset), Index: e.Index, Key: []byte(e.Key), Op: e.Op,
		Substitute: e.Substitute, Substituted: e.Substituted,
	}
	if e.Cause != nil {
		s.Cause = filename.Text(e.Cause.Error())
	}
	return s
}

func fromClasses(classes []dataset.Class) []*pb.Class {
	all := make([]*pb.Class, len(classes))
	for i, c := range classes {
		all[i] = &pb.Class{Name: []byte(c.Name), Samples: uint64(c.Samples), Digest: c.Digest}
	}
	return all
}

func fromSample(s *pipeline.Sample) *pb.Sample {
	p := &pb.Sample{
		Key: []byte(s.Key), Index: s.Index, Repeat: s.Repeat, Label: s.Label, EncodedBytes: uint64(s.EncodedBytes), Values: s.Values,
		Height: uint32(s.Height), Width: uint32(s.Width), Image: append(s.Image, s.Mask...),
	}
	if s.Err != nil {
		p.Error = fromSampleError(s.Err)
	}
	if len(s.Views) > 0 {
		setViews(p, s.Views)
	}
	for _, d := range s.Draws {
		p.Draws = append(p.Draws, fromDraw(d))
	}
	return p
}

func fromDraw(d transform.Draw) *pb.Draw {
	return &pb.Draw{Op: d.Op, Applied: d.Applied, Parameters: string(d.Parameters)}
}

// setViews puts the pixels of all views behind each other, and tells their sizes and draws in one draw, as an op with
// others inside does.
func setViews(p *pb.Sample, views []pipeline.View) {
	type view struct {
		Height     int               `json:"height"`
		Width      int               `json:"width"`
		Transforms []json.RawMessage `json:"transforms"`
	}
	told := struct {
		Views []view `json:"views"`
	}{make([]view, len(views))}
	for k, v := range views {
		told.Views[k] = view{v.Height, v.Width, []json.RawMessage{}}
		for i := range v.Draws {
			told.Views[k].Transforms = append(told.Views[k].Transforms, v.Draws[i].Flat())
		}
		p.Image = append(append(p.Image, v.Image...), v.Mask...)
	}
	parameters, _ := json.Marshal(told) // parameters are JSON already
	p.Draws = append(p.Draws, fromDraw(transform.Draw{Op: "Views", Applied: true, Parameters: parameters}))
}
