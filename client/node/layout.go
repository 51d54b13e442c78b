package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/feedwater-io/feedwater/batch"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// layout is what a job's batches look like, as it was told when it began: the fields, their types, the shape of one
// sample. What another answer says of a batch is held against it before a byte of that batch is used. A layout of no
// fields lets everything pass.
type layout []*pb.Field

// DamageError says that a node sent something that is no batch of the job. Another node may do better.
type DamageError struct {
	What string
}

func (e *DamageError) Error() string { return "the batch arrived damaged: " + e.What }

func newDamageError(format string, args ...any) error {
	return &DamageError{fmt.Sprintf(format, args...)}
}

const (
	mostFields     = 64
	mostDimensions = 8
	mostWorkers    = 4096
)

// CheckOpened tells whether what a node says of the job's batches makes sense. Workers beyond what any machine has are
// forgotten.
func CheckOpened(r *pb.OpenResponse) error {
	if len(r.Fields) == 0 || len(r.Fields) > mostFields {
		return fmt.Errorf("it says that batches have %d fields", len(r.Fields))
	}
	for i, f := range r.Fields {
		size, ok := shapeProduct(elementBytes(f.Dtype), f.Shape)
		switch {
		case slices.ContainsFunc(r.Fields[:i], func(other *pb.Field) bool { return other.Name == f.Name }):
			return fmt.Errorf("it says twice what field %q is", f.Name)
		case !slices.Contains([]string{"uint8", "int64", "bool"}, f.Dtype):
			return fmt.Errorf("field %q has type %q: another version?", f.Name, f.Dtype)
		case !ok || size > maxBatchBytes || len(f.Shape) > mostDimensions:
			return fmt.Errorf("field %q has shape %v", f.Name, f.Shape)
		}
	}
	for _, o := range r.Ops {
		if a := bytes.TrimSpace([]byte(o.Arguments)); !json.Valid(a) || a[0] != '{' {
			return fmt.Errorf("op %q has arguments that are no JSON object", o.Name)
		}
	}
	r.Workers = min(r.Workers, mostWorkers)
	return nil
}

// checkHeader tells whether a header describes a batch of count samples that takes size bytes.
func (l layout) checkHeader(h *pb.Header, count int, size uint64) error {
	if len(l) == 0 {
		return nil
	}
	if len(h.Fields) != len(l) {
		return newDamageError("it has %d fields, the job's batches have %d", len(h.Fields), len(l))
	}
	most := uint64(0)
	for _, want := range l {
		n, err := checkField(h.Fields, want, count, size)
		if err != nil {
			return err
		}
		most += batch.AlignUp(n)
	}
	if size > most {
		return newDamageError("it takes %d bytes, its fields %d", size, most)
	}
	for _, e := range h.Errors {
		if int64(e.Offset) >= int64(count) {
			return newDamageError("sample %d of %d does not decode", e.Offset, count)
		}
	}
	return nil
}

// checkField finds a field among those of a batch and returns the bytes that it takes.
func checkField(fields []*pb.Field, want *pb.Field, count int, size uint64) (uint64, error) {
	i := slices.IndexFunc(fields, func(f *pb.Field) bool { return f.Name == want.Name })
	if i < 0 {
		return 0, newDamageError("field %q is missing", want.Name)
	}
	f := fields[i]
	if f.Dtype != want.Dtype || len(f.Shape) != len(want.Shape)+1 || f.Shape[0] != uint64(count) || !slices.Equal(f.Shape[1:], want.Shape) {
		return 0, newDamageError("field %q is %s %v for %d samples of %s %v", f.Name, f.Dtype, f.Shape, count, want.Dtype, want.Shape)
	}
	if slices.Contains(want.Shape, 0) != (len(f.RaggedOffsets) > 0) || !raggedFits(f, count) {
		return 0, newDamageError("field %q: the sizes of its samples make no sense", f.Name)
	}
	n, ok := FieldBytes(f)
	if !ok || f.Offset > size || n > size-f.Offset {
		return 0, newDamageError("field %q does not lie within its %d bytes", f.Name, size)
	}
	return n, nil
}

// raggedFits tells whether the samples of a field that differ in size lie behind each other, each as large as its shape
// says.
func raggedFits(f *pb.Field, count int) bool {
	if len(f.RaggedOffsets) == 0 {
		return true
	}
	if len(f.RaggedOffsets) != count+1 || !isRaggedValid(f) {
		return false
	}
	dimensions := len(f.Shape) - 1
	for i := range count {
		n := elementBytes(f.Dtype)
		for k, d := range f.RaggedShapes[i*dimensions : (i+1)*dimensions] {
			if same := f.Shape[k+1]; same != 0 && same != uint64(d) {
				return false
			}
			var ok bool
			if n, ok = shapeProduct(n, []uint64{uint64(d)}); !ok {
				return false
			}
		}
		if f.RaggedOffsets[i+1]-f.RaggedOffsets[i] != n {
			return false
		}
	}
	return true
}
