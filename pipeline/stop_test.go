package pipeline

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"sync/atomic"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// counting is a sink that has its want cancelled when the first rows have come.
type counting struct {
	want *Want
	rows int
}

func (c *counting) Rows(_ []byte, _, n int) {
	c.rows += n
	c.want.Cancel()
}

// A picture that is being decoded is left off when its want is cancelled, and the decoder makes other pictures as before.
func TestCancelledWithinDecoding(t *testing.T) {
	const height = 4000
	m := image.NewGray(image.Rect(0, 0, 64, height))
	m.SetGray(1, height-1, color.Gray{Y: 200})
	var file bytes.Buffer
	if err := jpeg.Encode(&file, m, nil); err != nil {
		t.Fatal(err)
	}
	d := newDecoder("scalar")
	w := &Want{}
	sink := &counting{want: w}
	decode := func() error {
		if _, _, err := d.codec.Parse(file.Bytes(), codec.DefaultLimits()); err != nil {
			t.Fatal(err)
		}
		return d.stopWith(&w.cancelled, d.codec).Decode(m.Bounds(), sink)
	}
	if err := decode(); !errors.Is(err, transform.ErrStopped) || sink.rows >= height {
		t.Errorf("%v after %d rows of %d", err, sink.rows, height)
	}
	if stopped := d.codec; !d.replaceStopped() || d.codec == stopped || d.replaceStopped() {
		t.Error("the codec that was stopped is used again")
	}
	w = &Want{}
	sink = &counting{want: &Want{}}
	if err := decode(); err != nil || sink.rows != height {
		t.Errorf("another picture: %v after %d rows", err, sink.rows)
	}
	if d.replaceStopped() {
		t.Error("a codec that was not stopped is replaced")
	}
}

// A panic of a codec is the codec's, whatever stands around it.
func TestPanicWithinDecoding(t *testing.T) {
	defer func() {
		if recover() != "of the codec" {
			t.Error("another panic")
		}
	}()
	_ = newDecoder("scalar").stopWith(&atomic.Bool{}, panicking{}).Decode(image.Rect(0, 0, 1, 1), nil)
}

type panicking struct{}

func (panicking) Decode(image.Rectangle, pixel.Sink) error { panic("of the codec") }
