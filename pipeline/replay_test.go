package pipeline

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/internal/budget"
)

// A plan without pictures has no pixels to make.
func TestReplayWithoutPictures(t *testing.T) {
	j := open(t, folder(t), `{"fields": ["label"]}`, Options{OnPanic: func(e *PanicError) { t.Error(e) }})
	samples, err := j.Replay(t.Context(), batch.Name{Position: 8, Count: 1}, math.MaxInt, nil)
	if err != nil || samples[0].Key == "" || samples[0].Image != nil || samples[0].Err != nil {
		t.Errorf("%+v, %v", samples, err)
	}
}

// A sample that takes more than it may is refused before there is memory for it.
func TestReplayOfTooMuch(t *testing.T) {
	view := `, [{"op": "Resize", "size": [1000, 1000]}]`
	j := open(t, folder(t), `{"views": [`+strings.Repeat(view, 16)[2:]+`]}`, Options{Workers: 1})
	const size = 16 * 3000 * 1000
	budget.Hold(t, size/4, func() {
		var room *RoomError
		if _, err := j.Replay(t.Context(), batch.Name{Count: 3}, size-1, nil); !errors.As(err, &room) || room.Bytes != size {
			t.Errorf("%v", err)
		}
	})
	if samples, err := j.Replay(t.Context(), batch.Name{Count: 1}, size, nil); err != nil || len(samples[0].Views) != 16 {
		t.Errorf("what it may take: %v", err)
	}
}
