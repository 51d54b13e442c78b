package pipeline

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/codec"
)

// A panic in the code that makes samples ends the want, not the process, and the decoder that it left behind is not used again.
func TestPanicEndsTheWant(t *testing.T) {
	var mu sync.Mutex
	var told []*PanicError
	j := open(t, folder(t), `{"transforms": [{"op": "Resize", "size": [8, 8]}]}`, Options{Workers: 1, OnPanic: func(e *PanicError) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, e)
	}})
	try := func(image func(_, _ int, _ []byte)) Result {
		done := make(chan Result, 1)
		_, bytes := j.Layout(4)
		w := &Want{Name: batch.Name{Count: 4}, Request: batch.Request{Dst: make([]byte, bytes), Image: image}, Done: func(r Result) { done <- r }}
		if err := j.Submit(w); err != nil {
			t.Fatal(err)
		}
		return <-done
	}
	decoder := func() *codec.Decoder {
		d := <-j.p.decoders
		defer func() { j.p.decoders <- d }()
		return d.codec
	}
	before := decoder()
	var e *PanicError
	if r := try(func(_, i int, _ []byte) {
		if i == 2 {
			panic("on purpose")
		}
	}); !errors.As(r.Err, &e) || e.Key == "" || !strings.Contains(e.Error(), "on purpose") || !strings.Contains(string(e.Stack), "panic_test.go") {
		t.Errorf("the want ended with %v", r.Err)
	}
	var verdict *SampleError
	if errors.As(error(e), &verdict) {
		t.Error("a panic is a verdict on the sample")
	}
	mu.Lock()
	if len(told) == 0 {
		t.Error("nobody was told")
	}
	mu.Unlock()
	if decoder() == before {
		t.Error("the decoder is used again")
	}
	if r := try(func(_, _ int, _ []byte) {}); r.Err != nil {
		t.Errorf("the next want: %v", r.Err)
	}
}
