package pipeline

import (
	"errors"
	"fmt"
	"image"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/codec"
)

// Jobs of one plan share a decoder's runners, and of many plans those go that were not used for longest.
func TestRunnersAreKept(t *testing.T) {
	dir := folder(t)
	p, err := Open(Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	job := func(size int) *Job {
		return prepare(t, p, dir, fmt.Sprintf(`{"transforms": [{"op": "Resize", "size": [%d, 8]}]}`, size))
	}
	d := newDecoder("scalar")
	runner := func(j *Job) any {
		all, err := d.runnersFor(j)
		if err != nil {
			t.Fatal(err)
		}
		return all[0].Runner
	}
	const busy = 1000 // the size of a job that goes on all the time
	first := runner(job(busy))
	made := map[int]any{}
	for size := 1; size < 3*maxRunners; size++ {
		made[size] = runner(job(size))
		if runner(job(busy)) != first {
			t.Fatalf("the runner of a plan in use is made again beside %d others", size)
		}
		if len(d.runners) > maxRunners {
			t.Fatalf("%d runners are kept", len(d.runners))
		}
	}
	for size := 2*maxRunners + 1; size < 3*maxRunners; size++ {
		if runner(job(size)) != made[size] {
			t.Errorf("the runner of one of the latest %d plans is made again", maxRunners)
		}
	}
}

// A want that is given up while a sample is made does not wait for what its ops would take.
func TestCancelledWithinASample(t *testing.T) {
	dir := folder(t)
	for _, on := range []string{"raise", "skip", "substitute"} {
		j := open(t, dir, `{"transforms": [{"op": "ElasticTransform"}], "on_error": "`+on+`"}`, Options{Workers: 1})
		done := make(chan Result, 1)
		w := &Want{Name: batch.Name{Count: 1}, Done: func(r Result) { done <- r }, Request: batch.Request{Grow: func(n int) []byte { return make([]byte, n) }}}
		_, size := j.Layout(1)
		w.Dst = make([]byte, size)
		w.Charge = func(int) bool { // asked between the draws and the decoding
			w.Cancel()
			return true
		}
		if err := j.Submit(w); err != nil {
			t.Fatal(err)
		}
		if r := <-done; !errors.Is(r.Err, ErrCancelled) || isVerdict(r.Err) {
			t.Errorf("on_error %s: %v", on, r.Err)
		}
		if _, r := fetch(t, j, batch.Name{Count: 1}); r.Err != nil {
			t.Errorf("on_error %s, another want: %v", on, r.Err)
		}
	}
}

// So does one of its mask.
func TestCancelledWithinAMask(t *testing.T) {
	images, masks := greyFolders(t)
	j, err := masked(t, images, masks, maskPlan, Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan Result, 1)
	w := &Want{Name: batch.Name{Count: 1}, Done: func(r Result) { done <- r }}
	_, size := j.Layout(1)
	w.Dst = make([]byte, size)
	w.Image = func(_, _ int, _ []byte) { w.Cancel() } // behind the picture, before its mask
	if err := j.Submit(w); err != nil {
		t.Fatal(err)
	}
	if r := <-done; !errors.Is(r.Err, ErrCancelled) || isVerdict(r.Err) {
		t.Error(r.Err)
	}
}

// A decoder that is given back holds no file, nor memory that only a huge picture needs.
func TestDecodersKeepNothingHuge(t *testing.T) {
	j := open(t, folder(t), `{"transforms": [{"op": "Resize", "size": [8, 8]}]}`, Options{Workers: 1})
	k := &worker{p: j.p, want: &Want{job: j}}
	borrow := func(do func(*decoder)) *decoder {
		d, begun := k.acquireDecoder()
		defer k.releaseDecoder(d, begun)
		do(d)
		return d
	}
	file := pictures()["class_0/img_0.jpg"]
	d := borrow(func(d *decoder) {
		d.maskCodec = codec.NewDecoder(d.level)
		for _, c := range []*codec.Decoder{d.codec, d.maskCodec} {
			if _, _, err := c.Parse(file, codec.DefaultLimits()); err != nil {
				t.Fatal(err)
			}
		}
		d.wide, d.pixels = make([]byte, keptBytes+1), make([]byte, keptBytes+1)
		d.shared.image.Reset(1<<12, 1<<12)
	})
	if d.wide != nil || d.pixels != nil || d.shared.image.Pix != nil {
		t.Error("huge memory is kept")
	}
	for _, c := range []*codec.Decoder{d.codec, d.maskCodec} {
		if c.Decode(image.Rect(0, 0, 1, 1), &d.shared) == nil {
			t.Error("a file is held")
		}
	}
	borrow(func(d *decoder) {
		d.wide, d.pixels = make([]byte, keptBytes), make([]byte, keptBytes)
		d.shared.image.Reset(1<<10, 1<<10)
	})
	if d.wide == nil || d.pixels == nil || d.shared.image.Pix == nil {
		t.Error("what an ordinary picture needs is not kept")
	}
}
