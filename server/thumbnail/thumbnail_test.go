package thumbnail_test

import (
	"bytes"
	"fmt"
	"image/color"
	"testing"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/thumbnail"
)

var job = thumbnail.Key{Job: "rn50", Plan: "plan"}

func TestOnlyWhileSomebodyLooks(t *testing.T) {
	var k thumbnail.Keeper
	now := time.Now()
	if k.Begin(job, now) {
		t.Error("a set is due, and nobody looks")
	}
	if set, full := k.Look(job, now); set != nil || full {
		t.Errorf("%v %v at first", set, full)
	}
	if k.Begin(thumbnail.Key{Job: "other"}, now) || !k.Begin(job, now) || k.Begin(job, now.Add(thumbnail.Every-1)) {
		t.Error("a set is due of another job, not of this one, or again at once")
	}
	k.Put(job, &thumbnail.Set{Epoch: 3})
	if set, _ := k.Look(job, now.Add(thumbnail.Every)); set == nil || set.Epoch != 3 {
		t.Errorf("%v", set)
	}
	if !k.Begin(job, now.Add(thumbnail.Every)) {
		t.Error("no further set is due")
	}
	late := now.Add(time.Minute)
	if k.Begin(job, late) {
		t.Error("a set is due a minute after somebody looked")
	}
	k.Put(job, &thumbnail.Set{Epoch: 4})
	if set, _ := k.Look(job, late); set != nil {
		t.Error("pictures are kept that nobody looked at")
	}
}

func TestJobsAreBounded(t *testing.T) {
	var k thumbnail.Keeper
	now := time.Now()
	for i := range thumbnail.MaxJobs {
		if _, full := k.Look(thumbnail.Key{Job: fmt.Sprint(i)}, now); full {
			t.Fatal("full too soon")
		}
	}
	if _, full := k.Look(job, now); !full {
		t.Error("more jobs than the bound")
	}
	if _, full := k.Look(job, now.Add(time.Minute)); full {
		t.Error("still full when nobody looks at the others")
	}
}

func TestPicturesFit(t *testing.T) {
	const height, width, count = 300, 200, 20
	data := make([]byte, 64+count*height*width*3)
	for i := range count {
		one := data[64+i*height*width*3:][:height*width*3]
		copy(one[len(one)/2:], bytes.Repeat([]byte{byte(i), 200, 40}, height*width/2)) // black above
	}
	f := &pb.Field{Name: "image", Dtype: "uint8", Offset: 64, Shape: []uint64{count, height, width, 3}}
	label := &pb.Field{Name: "label", Dtype: "int64", Shape: []uint64{count}}
	got, missing := thumbnail.Of(&pb.Header{Fields: []*pb.Field{label, f}}, data)
	if len(got) != thumbnail.Pictures || missing != "" {
		t.Fatalf("%d pictures, %q", len(got), missing)
	}
	for i, m := range got {
		if b := m.Bounds(); b.Dx() != 64 || b.Dy() != 96 {
			t.Fatalf("%v", b)
		}
		if top, bottom := m.RGBAAt(10, 40), m.RGBAAt(60, 90); top != (color.RGBA{0, 0, 0, 255}) || bottom != (color.RGBA{byte(i), 200, 40, 255}) {
			t.Errorf("picture %d: %v above %v", i, top, bottom)
		}
	}
}

func TestRaggedAndGrey(t *testing.T) {
	f := &pb.Field{Dtype: "uint8", Shape: []uint64{2, 0, 0, 1}, RaggedOffsets: []uint64{0, 6, 10}, RaggedShapes: []uint32{2, 3, 1, 4, 1, 1}}
	got, _ := thumbnail.Of(&pb.Header{Fields: []*pb.Field{f}}, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	if len(got) != 2 || got[0].Bounds().Dx() != 3 || got[1].Bounds().Dy() != 4 || got[1].RGBAAt(0, 3) != (color.RGBA{10, 10, 10, 255}) {
		t.Errorf("%v", got)
	}
}

// Fields that say more than there is give no pictures, and no panic.
func TestFieldsThatLie(t *testing.T) {
	for _, f := range []*pb.Field{
		{Dtype: "uint8", Shape: []uint64{1, 1 << 40, 1 << 40, 3}}, {Dtype: "uint8", Shape: []uint64{1, 4, 4, 3}}, {Dtype: "uint8", Shape: []uint64{1, 0, 4, 3}},
		{Dtype: "uint8", Shape: []uint64{1, 2, 2, 3}, Offset: 1 << 63}, {Dtype: "uint8", Shape: []uint64{1, 0, 0, 3}, RaggedOffsets: []uint64{0}},
		{Dtype: "int64", Shape: []uint64{1, 1, 1, 1}}, {Dtype: "uint8", Shape: []uint64{1, 8}},
	} {
		if got, missing := thumbnail.Of(&pb.Header{Fields: []*pb.Field{f}}, make([]byte, 20)); len(got) > 0 || missing == "" {
			t.Errorf("%v gives %v", f, got)
		}
	}
}
