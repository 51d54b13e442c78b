package pipeline

import (
	"fmt"
	"testing"
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
		all, err := d.ready(j)
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
