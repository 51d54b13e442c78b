package pipeline

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
)

// Values are what the data has besides picture and label: captions, embeddings. A batch has a field of each: a row of bytes for each sample, as
// long as the largest value of the data set and four bytes more, which say how many bytes of the row the value has, little-endian. They stand
// first, and behind the value there are zeros.

// valueHead is how many bytes of a row say how long its value is.
const valueHead = 4

// valueField is a field of values: number k of the snapshot's.
type valueField struct {
	name string
	k    int
	row  int // bytes of each
}

// checkNames returns what is wrong with the names of the plan's fields, and tells the source which of them are its.
func (p *Plan) checkNames() error {
	var values []string
	for i, f := range p.Fields {
		at := fmt.Sprintf("fields[%d]", i)
		if slices.Contains(p.Fields[:i], f) {
			return &batch.PlanError{Field: at, Message: f + " is there twice"}
		}
		if isMadeField(f) {
			continue
		}
		if !isValueName(f) || isOwnName(f) {
			return &batch.PlanError{Field: at, Message: fmt.Sprintf("%.99q is none of image, label, mask, and no name of a value", f)}
		}
		values = append(values, f)
	}
	if len(values) > manifest.MostValues {
		return &batch.PlanError{Field: "fields", Message: fmt.Sprintf("%d values of each sample, at most %d", len(values), manifest.MostValues)}
	}
	p.Source.Values = strings.Join(SortValues(values), ",")
	return nil
}

// isMadeField reports whether a plan's field is none of the values that the data has.
func isMadeField(name string) bool {
	return name == imageField || name == "label" || name == maskField || name == drawsField
}

// SortValues are names of values in the order in which a data set is opened with them, whatever that of a plan's fields.
func SortValues(names []string) []string { return slices.Sorted(slices.Values(names)) }

// isOwnName reports whether a field is, or could be, one that batches have for other things.
func isOwnName(name string) bool {
	first, _, _ := strings.Cut(name, ".")
	return slices.Contains([]string{imageField, boxField, maskField, "index", "key", "valid"}, first)
}

// isValueName reports whether a value may be called so.
func isValueName(name string) bool {
	return name != "" && len(name) <= 200 && utf8.ValidString(name) && name == strings.TrimSpace(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == ',' || r == '/' || unicode.IsControl(r) })
}

// listValues are the fields of a plan that are values of a snapshot.
func listValues(p *Plan, s *dataset.Snapshot) (all []valueField, err error) {
	for i, name := range p.Fields {
		if isMadeField(name) {
			continue
		}
		k := slices.IndexFunc(s.Values(), func(v dataset.Value) bool { return v.Name == name })
		if k < 0 {
			return nil, &batch.PlanError{Field: fmt.Sprintf("fields[%d]", i), Message: (&dataset.ValueError{Name: name, In: "the data"}).Error()}
		}
		all = append(all, valueField{name, k, valueHead + int(s.Values()[k].Most)})
	}
	return all, nil
}

// fieldOf is the field of a batch that holds the values.
func (v *valueField) fieldOf() batch.Field {
	return batch.Field{Name: v.name, DType: "uint8", Shape: []int{v.row}}
}

// readsFiles reports whether making a sample takes a file.
func (j *Job) readsFiles() bool {
	return len(j.pictures) > 0 || len(j.values) > 0 && j.snapshot.ValuesInFiles()
}

// setValues writes the values of sample i, whose file was read if they lie there.
func (a *assembly) setValues(i int, s *dataset.Sample, file []byte) {
	j := a.want.job
	for _, v := range j.values {
		row := a.want.Dst[batch.OffsetOf(a.fields, v.name)+i*v.row:][:v.row]
		setRow(row, j.snapshot.ReadValue(s, v.k, file))
	}
}

// setRow writes a value, which fits, into its row.
func setRow(row, value []byte) {
	binary.LittleEndian.PutUint32(row, uint32(len(value)))
	clear(row[valueHead+copy(row[valueHead:], value):])
}

// clearValues empties the values of sample i.
func (a *assembly) clearValues(i int) {
	for _, v := range a.want.job.values {
		clear(a.want.Dst[batch.OffsetOf(a.fields, v.name)+i*v.row:][:v.row])
	}
}

// copyValues are the values of a sample by their names.
func (j *Job) copyValues(s *dataset.Sample, file []byte) map[string][]byte {
	if len(j.values) == 0 {
		return nil
	}
	all := make(map[string][]byte, len(j.values))
	for _, v := range j.values {
		all[v.name] = slices.Clone(j.snapshot.ReadValue(s, v.k, file))
	}
	return all
}
