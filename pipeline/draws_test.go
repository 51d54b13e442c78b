package pipeline

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
)

// readDraws is what a batch's row of draws says; nil: nothing.
func readDraws(t *testing.T, dst []byte, r *Result, i int) *drawnSample {
	t.Helper()
	var f batch.Field
	for _, field := range r.Fields {
		if field.Name == drawsField {
			f = field
		}
	}
	row := dst[f.Offset+i*f.Shape[0]:][:f.Shape[0]]
	n := binary.LittleEndian.Uint32(row)
	for _, b := range row[valueHead+n:] {
		if b != 0 {
			t.Fatal("what was there before shows behind the draws")
		}
	}
	if n == 0 {
		return nil
	}
	told := &drawnSample{}
	if err := json.Unmarshal(row[valueHead:][:n], told); err != nil {
		t.Fatal(err)
	}
	return told
}

const movedPlan = `{"seed": 3, "fields": ["image", "label", "image.draws"], "on_error": "skip", "transforms": [
	{"op": "RandomResizedCrop", "size": 20},
	{"op": "RandomApply", "p": 0.5, "transforms": [{"op": "RandomAffine", "degrees": [-30, 30], "translate": [0.1, 0.2], "scale": [0.5, 1.5], "shear": [-5, 5]}]},
	{"op": "RandomHorizontalFlip"}, {"op": "RandomPerspective", "p": 1}]}`

// Batches tell what replays tell of the same samples, and pixels are those of a plan without draws.
func TestDrawsAreThoseOfReplays(t *testing.T) {
	dir := folder(t)
	j := open(t, dir, movedPlan, Options{Workers: 2})
	n := batch.Name{Epoch: 2, Position: 3, Count: 12}
	dst, r := fetch(t, j, n)
	samples, err := j.Replay(t.Context(), n, math.MaxInt, nil)
	if err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	for i, s := range samples {
		told := readDraws(t, dst, &r, i)
		if told == nil || len(told.Draws) != len(s.Draws) || told.Size[0] < 1 || told.Size[1] < 1 {
			t.Fatalf("sample %d: %+v", i, told)
		}
		for k := range s.Draws {
			if want := string(s.Draws[k].Flat()); string(told.Draws[k]) != want {
				t.Errorf("sample %d: %s, a replay has %s", i, told.Draws[k], want)
			}
		}
	}
}

// A sample that is left out has none.
func TestDrawsOfHolesAreEmpty(t *testing.T) {
	dir := folder(t)
	keys := broken(t, dir)
	j := open(t, dir, movedPlan, Options{Workers: 2})
	dst, r := fetch(t, j, batch.Name{Count: int(j.Samples())})
	if r.Err != nil || len(r.Errors) < len(keys) {
		t.Fatalf("%v, %d errors", r.Err, len(r.Errors))
	}
	holes := map[int]bool{}
	for _, e := range r.Errors {
		holes[e.Offset] = true
	}
	for i := range int(j.Samples()) {
		if told := readDraws(t, dst, &r, i); (told == nil) != holes[i] {
			t.Errorf("sample %d: %+v", i, told)
		}
	}
}

func TestDrawsGoWithOnePicture(t *testing.T) {
	for _, plan := range []string{
		`{"fields": ["image.draws"]}`,
		`{"fields": ["image", "image.draws"], "views": [[{"op": "CenterCrop", "size": 8}], [{"op": "CenterCrop", "size": 8}]]}`,
	} {
		var e *batch.PlanError
		if _, err := ParsePlan([]byte(plan)); !errors.As(err, &e) || e.Field != "fields" {
			t.Errorf("%s: %v", plan, err)
		}
	}
	if _, err := ParsePlan([]byte(`{"fields": ["image", "image.drawn"]}`)); err == nil {
		t.Error("a name that could be one of ours is taken")
	}
}
