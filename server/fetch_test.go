package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

func TestOpen(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{Version: "v1"})
	r, err := pb.NewFeedClient(n.conn()).Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	if r.Samples != 1000 || len(r.Classes) != 10 || string(r.Classes[3].Name) != "class3" || len(r.Fingerprint) != 64 || r.Numerics != "numerics" || r.Version != "v1" || r.Workers != 2 {
		t.Errorf("got %v", r)
	}
	want := []*pb.Field{{Name: "image", Dtype: "uint8", Shape: []uint64{4, 4, 3}}, {Name: "label", Dtype: "int64"}, {Name: "index", Dtype: "int64"}}
	for i, f := range want {
		if !proto.Equal(f, r.Fields[i]) {
			t.Errorf("field %v, want %v", r.Fields[i], f)
		}
	}
	again := n.open(r.Plan)
	if again.Plan != r.Plan || again.PlanHash != r.PlanHash || !strings.Contains(r.Plan, r.Fingerprint) {
		t.Errorf("the canonical plan %s opens as %s", r.Plan, again.Plan)
	}
}

func reasonOf(err error) (codes.Code, string) {
	s, _ := status.FromError(err)
	for _, d := range s.Details() {
		if i, ok := d.(*errdetails.ErrorInfo); ok {
			return s.Code(), i.Reason
		}
	}
	return s.Code(), ""
}

func TestOpenRefuses(t *testing.T) {
	n := newNode(t, &servertest.Engine{Content: "a"}, server.Options{})
	good := n.open(plan)
	other := strings.Replace(good.Plan, good.Fingerprint, strings.Repeat("ab", 32), 1)
	for _, c := range []struct {
		plan, numerics string
		code           codes.Code
		reason         pb.Reason
	}{
		{"{", "", codes.InvalidArgument, pb.Reason_REASON_PLAN},
		{`{"source": {"root": "none"}}`, "", codes.NotFound, pb.Reason_REASON_ROOT},
		{`{}`, "", codes.NotFound, pb.Reason_REASON_ROOT},
		{`{"source": {"path": "/etc"}}`, "", codes.NotFound, pb.Reason_REASON_ROOT},
		{`{"source": {"root": "photos", "path": "../.."}}`, "", codes.InvalidArgument, pb.Reason_REASON_ROOT},
		{`{"source": {"root": "photos", "path": "none"}}`, "", codes.NotFound, pb.Reason_REASON_DATA_MISSING},
		{`{"source": {"fingerprint": "` + strings.Repeat("ab", 32) + `"}}`, "", codes.NotFound, pb.Reason_REASON_ROOT},
		{other, "", codes.FailedPrecondition, pb.Reason_REASON_DATA_DIFFERS},
		{plan, "others", codes.FailedPrecondition, pb.Reason_REASON_NUMERICS},
	} {
		_, err := n.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: c.plan, Numerics: c.numerics})
		if code, reason := reasonOf(err); code != c.code || reason != c.reason.String() {
			t.Errorf("%s: %v, %s; want %v, %v", c.plan, err, reason, c.code, c.reason)
		}
	}
	later := newNode(t, &servertest.Engine{}, server.Options{OldestProtocol: 2, Version: "v9"})
	_, err := later.Open(t.Context(), &pb.OpenRequest{Plan: plan, Protocol: 1})
	if code, reason := reasonOf(err); code != codes.FailedPrecondition || reason != pb.Reason_REASON_VERSION.String() || !strings.Contains(err.Error(), "v9") {
		t.Errorf("an old trainer: %v", err)
	}
	if r, err := later.Open(t.Context(), &pb.OpenRequest{Plan: plan, Protocol: 2}); err != nil || r.Protocol != pb.Protocol {
		t.Errorf("a trainer that is new enough: %v, %v", r, err)
	}
	byFingerprint := `{"source": {"fingerprint": "` + good.Fingerprint + `"}}`
	if r := n.open(byFingerprint); r.PlanHash != good.PlanHash {
		t.Error("data named by its fingerprint is other data")
	}
}

// A root that nobody has opened yet is found by its fingerprint too.
func TestOpenByFingerprintScansRoots(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{})
	r := newNode(t, &servertest.Engine{}, server.Options{}).open(plan)
	if got := n.open(`{"source": {"fingerprint": "` + r.Fingerprint + `"}}`); got.Fingerprint != r.Fingerprint {
		t.Errorf("got %v", got)
	}
}

// What trying again would not mend is said at once; what may pass is said to be the node's trouble.
func TestOpenTellsLastingTroubleFromPassing(t *testing.T) {
	var trouble error
	n := newNode(t, &servertest.Engine{Scanning: func(context.Context, string) error { return trouble }}, server.Options{})
	for cause, reason := range map[error]pb.Reason{
		fs.ErrNotExist:          pb.Reason_REASON_DATA_MISSING,
		syscall.EACCES:          pb.Reason_REASON_DATA_MISSING,
		syscall.ENOTDIR:         pb.Reason_REASON_DATA_MISSING,
		syscall.ELOOP:           pb.Reason_REASON_DATA_MISSING,
		dataset.ErrLayout:       pb.Reason_REASON_DATA_MISSING,
		syscall.EIO:             pb.Reason_REASON_READ,
		syscall.ESTALE:          pb.Reason_REASON_READ,
		syscall.EMFILE:          pb.Reason_REASON_READ,
		errors.New("any other"): pb.Reason_REASON_READ,
	} {
		trouble = &fs.PathError{Op: "open", Path: "a", Err: cause}
		if _, err := n.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan}); err == nil {
			t.Errorf("%v: no error", cause)
		} else if _, got := reasonOf(err); got != reason.String() {
			t.Errorf("%v: %s, want %s", cause, got, reason)
		}
	}
	trouble = nil
	for _, path := range []string{`a\u0000b`, strings.Repeat("a", 300)} {
		_, err := n.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: `{"source": {"root": "photos", "path": "` + path + `"}}`})
		if _, reason := reasonOf(err); reason != pb.Reason_REASON_DATA_MISSING.String() {
			t.Errorf("path %q: %v", path, err)
		}
	}
}

func TestFetch(t *testing.T) {
	e := &servertest.Engine{Height: 64, Width: 100, Result: func(_ *batch.Name, r *pipeline.Result) {
		r.Index = pipeline.IndexUse{Hits: 1, Copies: 2, Misses: 3, MissingCopies: 4, MissingCopyBytes: 5 << 32, MadeCopies: 6, Kept: 7}
	}}
	n := newNode(t, e, server.Options{})
	tr := n.started()
	names := map[uint64]*pb.Name{
		1: rangeOf(0, 0, 100),
		2: rangeOf(1, 990, 20), // over the end of the epoch
		3: {Epoch: 5, Samples: &pb.Name_List{List: &pb.List{Indices: []uint64{7, 7, 999}, Repeats: []uint32{0, 1, 0}}}},
		4: rangeOf(0, 0, 100),
	}
	for id, name := range names {
		tr.want(id, name)
	}
	got := map[uint64]*answer{}
	for range names {
		a := tr.mustNext()
		got[a.id] = a
	}
	first := got[1]
	size := 100*64*100*3 + 2*832 // fields begin at multiples of 64
	if len(first.data) != size || first.pieces != (size+1<<20-1)>>20 {
		t.Errorf("%d bytes in %d pieces", len(first.data), first.pieces)
	}
	if f := first.header.Fields[2]; f.Name != "index" || f.Offset != uint64(size-832) || len(f.Shape) != 1 || f.Shape[0] != 100 {
		t.Errorf("field %v", f)
	}
	if u := first.header.Index; u.GetHits() != 1 || u.GetCopies() != 2 || u.GetMisses() != 3 || u.GetMissingCopies() != 4 || u.GetMissingCopyBytes() != 5<<32 || u.GetMadeCopies() != 6 || u.GetKept() != 7 {
		t.Errorf("indexes %v", u)
	}
	if i := binary.LittleEndian.Uint64(first.data[size-832+8*99:]); i != 99 {
		t.Errorf("sample 99 has index %d", i)
	}
	if !bytes.Equal(first.data, got[4].data) {
		t.Error("the same name gave other bytes")
	}
	if n := len(got[3].header.Fields[1].Shape); n != 1 {
		t.Errorf("label of %d dimensions", n)
	}
	if err := tr.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.next(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	n.settled()
}

func TestPieceSizeIsClamped(t *testing.T) {
	n := newNode(t, &servertest.Engine{Height: 512, Width: 512}, server.Options{})
	text := n.open(plan).Plan
	for asked, want := range map[uint32]int{0: 1 << 20, 1: 256 << 10, 512 << 10: 512 << 10, 999_999: 61 * 16 << 10, 1 << 31: 2 << 20} {
		tr := n.fetch(n.conn())
		tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: text, PieceBytes: asked}}})
		tr.want(1, rangeOf(0, 0, 3))
		if m := tr.piece(); len(m.Data) >= want || proto.Size(m)+5 != want {
			t.Errorf("asked for %d: a piece of %d bytes on the wire; want %d", asked, proto.Size(m)+5, want)
		}
		tr.cancel()
	}
	n.settled()
}

func TestRagged(t *testing.T) {
	e := &servertest.Engine{Ragged: true, Height: 50, Width: 20}
	n := newNode(t, e, server.Options{})
	if s := n.open(plan).Fields[0].Shape; s[0] != 0 || s[1] != 0 {
		t.Errorf("shape %v does not say that samples differ", s)
	}
	tr := n.started()
	tr.want(1, rangeOf(0, 0, 120))
	a := tr.mustNext()
	f := a.header.Fields[0]
	if len(f.RaggedOffsets) != 121 || len(f.RaggedShapes) != 360 || f.RaggedShapes[3*49] != 50 || f.RaggedOffsets[2] != 3*20*3 {
		t.Errorf("%d offsets, %d shapes, sample 49 is %d high", len(f.RaggedOffsets), len(f.RaggedShapes), f.RaggedShapes[3*49])
	}
	n.settled()
}

// Samples that differ in size are in the budget too, while a batch of them is put together: twice for a moment.
func TestRaggedBudget(t *testing.T) {
	e := &servertest.Engine{Ragged: true, Height: 100, Width: 100}
	n := newNode(t, e, server.Options{NodeBytes: 4 << 20, StreamBytes: 1 << 20})
	tr := n.started()
	for id, c := range []struct {
		count uint32
		fits  bool
	}{{25, true}, {40, true}, {50, true}, {60, false}, {100, false}, {25, true}} { // sample i takes 300 (i + 1) bytes
		tr.want(uint64(id+1), rangeOf(0, 0, c.count))
		a := tr.mustNext()
		switch {
		case c.fits && a.failure != nil:
			t.Errorf("%d samples, %d bytes: %v", c.count, len(a.data), a.failure)
		case !c.fits && (a.failure.GetReason() != pb.Reason_REASON_TOO_LARGE || !strings.Contains(a.failure.GetMessage(), "none over 524288")):
			t.Errorf("%d samples, %d bytes: %v", c.count, len(a.data), a.failure)
		}
	}
	n.settled()
}

func TestFailures(t *testing.T) {
	sample := &pipeline.SampleError{Offset: 1, Index: 4, Key: "class4/4", Op: "decode", Cause: errors.New("damaged")}
	e := &servertest.Engine{}
	e.Fail = func(n *batch.Name) error {
		switch n.Epoch {
		case 1:
			return sample
		case 2:
			return &pipeline.ReadError{Index: 4, Cause: errors.New("input/output error")}
		}
		return nil
	}
	e.Result = func(n *batch.Name, r *pipeline.Result) {
		if n.Epoch == 3 {
			r.Errors = []pipeline.SampleError{*sample}
		}
	}
	n := newNode(t, e, server.Options{StreamBytes: 1 << 20})
	tr := n.started()
	for i, c := range []struct {
		name   *pb.Name
		code   codes.Code
		reason pb.Reason
	}{
		{rangeOf(1, 0, 8), codes.DataLoss, pb.Reason_REASON_SAMPLE},
		{rangeOf(2, 0, 8), codes.Unavailable, pb.Reason_REASON_READ},
		{rangeOf(0, 0, 0), codes.InvalidArgument, pb.Reason_REASON_NAME},
		{rangeOf(0, 0, 1<<31), codes.InvalidArgument, pb.Reason_REASON_NAME},
		{rangeOf(0, 0, 1<<20), codes.ResourceExhausted, pb.Reason_REASON_TOO_LARGE},
		{&pb.Name{}, codes.InvalidArgument, pb.Reason_REASON_NAME},
		{nil, codes.InvalidArgument, pb.Reason_REASON_NAME},
		{&pb.Name{Samples: &pb.Name_List{}}, codes.InvalidArgument, pb.Reason_REASON_NAME},
		{&pb.Name{Samples: &pb.Name_List{List: &pb.List{Indices: []uint64{1}}}}, codes.InvalidArgument, pb.Reason_REASON_NAME},
		{&pb.Name{Samples: &pb.Name_List{List: &pb.List{Indices: []uint64{1000}, Repeats: []uint32{0}}}}, codes.InvalidArgument, pb.Reason_REASON_NAME},
	} {
		tr.want(uint64(i+1), c.name)
		a := tr.mustNext()
		if a.failure == nil || codes.Code(a.failure.Code) != c.code || a.failure.Reason != c.reason {
			t.Errorf("%v: %v, want %v %v", c.name, a.failure, c.code, c.reason)
		}
		if (string(a.failure.GetSampleError().GetKey()) == "class4/4") != (c.reason == pb.Reason_REASON_SAMPLE) {
			t.Errorf("%v: %v", c.name, a.failure)
		}
	}
	tr.want(100, rangeOf(3, 0, 8))
	if a := tr.mustNext(); len(a.header.Errors) != 1 || a.header.Errors[0].Cause != "damaged" {
		t.Errorf("skipped samples are told as %v", a.header.Errors)
	}
	n.settled()
}

// hang makes batches of epoch 9 take for ever.
func hang(n *batch.Name) time.Duration {
	if n.Epoch == 9 {
		return 1000 * time.Hour
	}
	return 0
}

func TestCancel(t *testing.T) {
	e := &servertest.Engine{Delay: hang}
	n := newNode(t, e, server.Options{})
	tr := n.started()
	tr.want(1, rangeOf(9, 0, 8))
	tr.want(2, rangeOf(0, 0, 8))
	if a := tr.mustNext(); a.id != 2 {
		t.Fatalf("answer to %d", a.id)
	}
	tr.send(cancelOf(77)) // unknown
	tr.send(cancelOf(2))  // over
	tr.send(cancelOf(1))
	if a := tr.mustNext(); a.id != 1 || codes.Code(a.failure.GetCode()) != codes.Canceled {
		t.Errorf("answer to %d: %v", a.id, a.failure)
	}
	n.settled()
}

// A want that is cancelled while its batch is being sent is cut short.
func TestCancelCutsShort(t *testing.T) {
	e := &servertest.Engine{Height: 1000, Width: 1000}
	n := newNode(t, e, server.Options{})
	tr := n.started()
	tr.want(1, rangeOf(0, 0, 30)) // 90 MB
	tr.piece()
	tr.send(cancelOf(1))
	pieces := 1
	for {
		m, err := tr.stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.Failure != nil {
			break
		}
		pieces++
	}
	if pieces > 80 {
		t.Errorf("%d pieces of 86 came after a cancel", pieces)
	}
	n.settled()
}

func TestBudget(t *testing.T) {
	e := &servertest.Engine{Height: 64, Width: 64, Delay: hang}
	const slot = 301 << 12 // of 100 samples
	n := newNode(t, e, server.Options{NodeBytes: 3*slot + slot/2, StreamBytes: 2*slot + slot/2})
	a, b := n.started(), n.started()
	for id := range uint64(3) {
		a.want(id+1, rangeOf(9, 0, 100))
	}
	if got := a.mustNext(); got.id != 3 || got.failure.GetReason() != pb.Reason_REASON_BUSY || got.failure.RetryAfter.AsDuration() <= 0 {
		t.Errorf("the third want: %v", got.failure)
	}
	a.want(10, rangeOf(0, 0, 1)) // what fits is made
	if got := a.mustNext(); got.id != 10 || got.failure != nil {
		t.Errorf("the small want: %v", got.failure)
	}
	until(t, "the small batch's slot is still lent", func() bool { _, lent := n.Memory(); return lent <= 2*slot }) // it arrived a moment before the node knows
	b.want(1, rangeOf(9, 0, 100))
	b.want(2, rangeOf(9, 0, 100))
	if got := b.mustNext(); got.id != 2 || got.failure.GetReason() != pb.Reason_REASON_BUSY {
		t.Errorf("the other stream's second want: %v", got.failure)
	}
	a.cancel()
	for id := uint64(3); ; id++ { // a's share comes back
		b.want(id, rangeOf(0, 0, 100))
		got := b.mustNext()
		if got.failure == nil {
			break
		}
		if got.failure.Reason != pb.Reason_REASON_BUSY {
			t.Fatal(got.failure)
		}
	}
	b.cancel()
	n.settled()
}

func TestTooManyWants(t *testing.T) {
	n := newNode(t, &servertest.Engine{Delay: hang}, server.Options{StreamWants: 5})
	tr := n.started()
	for id := range uint64(6) {
		tr.want(id+1, rangeOf(9, 0, 1))
	}
	if a := tr.mustNext(); a.id != 6 || a.failure.GetReason() != pb.Reason_REASON_BUSY {
		t.Errorf("answer to %d: %v", a.id, a.failure)
	}
}

// What a broken or hostile trainer may send, and how the stream ends.
func TestHostileTrainer(t *testing.T) {
	n := newNode(t, &servertest.Engine{Delay: hang, Store: "s", Versions: "y"}, server.Options{})
	text := n.open(plan).Plan
	start := &pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: text}}}
	for name, c := range map[string]struct {
		requests []*pb.FetchRequest
		code     codes.Code
		reason   pb.Reason
	}{
		"want before start": {[]*pb.FetchRequest{wantOf(1, rangeOf(0, 0, 1))}, codes.InvalidArgument, pb.Reason_REASON_PROTOCOL},
		"start twice":       {[]*pb.FetchRequest{start, start}, codes.InvalidArgument, pb.Reason_REASON_PROTOCOL},
		"id 0":              {[]*pb.FetchRequest{start, wantOf(0, rangeOf(0, 0, 1))}, codes.InvalidArgument, pb.Reason_REASON_PROTOCOL},
		"id in use":         {[]*pb.FetchRequest{start, wantOf(1, rangeOf(9, 0, 1)), wantOf(1, rangeOf(9, 1, 1))}, codes.InvalidArgument, pb.Reason_REASON_PROTOCOL},
		"start of nothing":  {[]*pb.FetchRequest{{Request: &pb.FetchRequest_Start{}}}, codes.InvalidArgument, pb.Reason_REASON_PLAN},
		"want of nothing":   {[]*pb.FetchRequest{start, {Request: &pb.FetchRequest_Want{}}}, codes.InvalidArgument, pb.Reason_REASON_PROTOCOL},
		"other numerics":    {[]*pb.FetchRequest{{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: text, Numerics: "x"}}}}, codes.FailedPrecondition, pb.Reason_REASON_NUMERICS},
		"other versions":    {[]*pb.FetchRequest{{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: text, Versions: "x"}}}}, codes.FailedPrecondition, pb.Reason_REASON_DATA_DIFFERS},
		"a large message":   {[]*pb.FetchRequest{start, wantOf(1, &pb.Name{Samples: &pb.Name_List{List: &pb.List{Indices: make([]uint64, 5<<20)}}})}, codes.ResourceExhausted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tr := n.fetch(n.conn())
			for _, r := range c.requests {
				tr.send(r)
			}
			_, err := tr.next()
			if code, reason := reasonOf(err); code != c.code || c.reason != 0 && reason != c.reason.String() {
				t.Errorf("ended with %v (%s), want %v %v", err, reason, c.code, c.reason)
			}
		})
	}
	t.Run("requests of later versions", func(t *testing.T) {
		tr := n.fetch(n.conn())
		tr.send(start)
		unknown := &pb.FetchRequest{}
		unknown.ProtoReflect().SetUnknown([]byte{4<<3 | 2, 2, 8, 1})
		tr.send(unknown)
		tr.want(1, rangeOf(0, 0, 1))
		if a := tr.mustNext(); a.id != 1 || a.failure != nil {
			t.Errorf("answer %v", a.failure)
		}
		tr.cancel()
	})
	n.settled()
}

// garbage is sent as it is.
type garbage struct{}

func (garbage) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (garbage) Unmarshal([]byte, any) error   { return nil }
func (garbage) Name() string                  { return "proto" }

func TestGarbage(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{})
	for _, b := range [][]byte{{0xff}, {0x0a, 0x7f}, bytes.Repeat([]byte{0x12}, 1000)} {
		s, err := n.conn().NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, pb.Feed_Fetch_FullMethodName, grpc.ForceCodec(garbage{}))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SendMsg(b); err != nil {
			t.Fatal(err)
		}
		if err := s.RecvMsg(nil); status.Code(err) != codes.Internal {
			t.Errorf("%x: ended with %v", b, err)
		}
	}
}

// A trainer that asks without end and never listens.
func TestManyWantsFromADeafTrainer(t *testing.T) {
	n := newNode(t, &servertest.Engine{Height: 256, Width: 256}, server.Options{StreamWants: 4, NodeBytes: 64 << 20})
	tr := n.started()
	go func() {
		for id := uint64(1); id <= 100_000; id++ {
			if tr.stream.Send(wantOf(id, rangeOf(0, 0, 8))) != nil {
				return
			}
		}
	}()
	until(t, "100,000 wants were taken", func() bool { return n.Streams() == 1 })
	until(t, "100,000 wants were taken", func() bool { return n.Streams() == 0 })
	var err error
	for err == nil {
		_, err = tr.stream.Recv()
	}
	if code, reason := reasonOf(err); code != codes.ResourceExhausted || reason != pb.Reason_REASON_BUSY.String() {
		t.Errorf("ended with %v", err)
	}
	n.settled()
}

func TestManyWantsFromATrainerThatListens(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{StreamWants: 8})
	tr := n.started()
	const wants = 20_000
	ahead := make(chan struct{}, 8192) // fewer than answers that a node remembers
	go func() {
		for id := range uint64(wants) {
			ahead <- struct{}{}
			if tr.stream.Send(wantOf(id+1, rangeOf(0, id, 1))) != nil {
				return
			}
		}
	}()
	batches := 0
	for range wants {
		a := tr.mustNext()
		<-ahead
		if a.failure == nil {
			batches++
		} else if a.failure.Reason != pb.Reason_REASON_BUSY {
			t.Fatal(a.failure)
		}
	}
	if batches == 0 {
		t.Error("no batch among all answers")
	}
	tr.cancel()
	n.settled()
}

func TestDrain(t *testing.T) {
	release := make(chan struct{})
	e := &servertest.Engine{Fail: func(n *batch.Name) error {
		if n.Epoch == 9 {
			<-release
		}
		return nil
	}}
	unhealthy := 0
	n := newNode(t, e, server.Options{OnDrain: func() { unhealthy++ }})
	busy, idle := n.started(), n.started()
	busy.want(1, rangeOf(9, 0, 8))
	idle.want(1, rangeOf(0, 0, 8))
	idle.mustNext()
	until(t, "the want does not arrive", func() bool { return n.engine.Making() == 1 })
	drained := make(chan error)
	go func() { drained <- n.Drain(t.Context()) }()
	if a, err := idle.next(); !errors.Is(err, io.EOF) || len(a.notices) == 0 || !a.notices[len(a.notices)-1].Draining {
		t.Errorf("the idle stream ended with %v after notices %v", err, a.notices)
	}
	for {
		m, err := busy.stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.Notice.GetDraining() {
			break
		}
	}
	busy.want(2, rangeOf(0, 0, 8))
	if a := busy.mustNext(); a.id != 2 || a.failure.GetReason() != pb.Reason_REASON_DRAINING {
		t.Errorf("a want while draining: %v", a.failure)
	}
	if _, err := n.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan}); status.Code(err) != codes.Unavailable {
		t.Errorf("open while draining: %v", err)
	}
	if _, err := n.fetch(n.conn()).next(); status.Code(err) != codes.Unavailable {
		t.Errorf("a new stream while draining: %v", err)
	}
	close(release)
	if a := busy.mustNext(); a.id != 1 || a.failure != nil {
		t.Errorf("what was in flight: %v", a.failure)
	}
	if _, err := busy.next(); !errors.Is(err, io.EOF) {
		t.Errorf("the busy stream ended with %v", err)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if unhealthy != 1 {
		t.Errorf("OnDrain was called %d times", unhealthy)
	}
	n.settled()
}

func TestDrainGivesUp(t *testing.T) {
	n := newNode(t, &servertest.Engine{Delay: hang}, server.Options{})
	tr := n.started()
	tr.want(1, rangeOf(9, 0, 8))
	tr.want(2, rangeOf(0, 0, 8))
	tr.mustNext()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	n.grpc.Stop()
	n.settled()
}

// A node that holds wants speaks at least every 0.25 s; one that holds none says nothing.
func TestNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Delay: func(*batch.Name) time.Duration { return 10 * time.Second }}
		n := newNode(t, e, server.Options{})
		tr := n.started()
		time.Sleep(5 * time.Second)
		tr.want(1, rangeOf(0, 0, 8))
		last := time.Now()
		for range 49 {
			m, err := tr.stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if m.Notice == nil {
				break
			}
			if gap := time.Since(last); gap > 250*time.Millisecond || m.Notice.Wants != 1 || m.Notice.Queued != 1 {
				t.Fatalf("notice %v after %s", m.Notice, gap)
			}
			last = time.Now()
		}
		if time.Since(last) > 250*time.Millisecond {
			t.Error("silent before the batch")
		}
		n.grpc.Stop()
	})
}

// What a node cannot read is in its log, with its name, but not each of many.
func TestReadErrorsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		e := &servertest.Engine{Fail: func(*batch.Name) error {
			return fmt.Errorf("batch: %w", &pipeline.ReadError{Index: 7, Key: "cat/7.jpg", Cause: syscall.ESTALE})
		}}
		n := newNode(t, e, server.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
		tr := n.started()
		for id := range uint64(100) {
			tr.want(id+1, rangeOf(0, 0, 8))
			if a := tr.mustNext(); a.failure == nil {
				t.Error("a batch was made")
			}
		}
		text := log.String()
		if strings.Count(text, "could not be read") != 20 || !strings.Contains(text, "key=cat/7.jpg") || !strings.Contains(text, syscall.ESTALE.Error()) {
			t.Errorf("after 100 at once:\n%s", text)
		}
	})
}

// A trainer that keeps its connection and takes no data loses its stream, so that a node does not work for it for ever.
func TestStalledTrainerLosesItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &servertest.Engine{Height: 512, Width: 512}, server.Options{StallTimeout: time.Minute})
		tr := n.started()
		tr.want(1, rangeOf(0, 0, 100))
		tr.want(2, rangeOf(0, 0, 8))
		time.Sleep(59 * time.Second)
		if n.engine.Making() != 0 {
			t.Error("batches were not made")
		}
		if n.Streams() != 1 {
			t.Error("the stream ended before its time")
		}
		time.Sleep(20 * time.Second)
		if n.Streams() != 0 {
			t.Error("the stream is still there")
		}
		tr.cancel()
		n.settled()
	})
}

// What gRPC has queued for a trainer that takes nothing is had back with its connection, once no stream of that moves.
func TestConnectionsThatHoldMemoryAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		n := newNode(t, &servertest.Engine{Height: 128, Width: 128}, server.Options{StallTimeout: 10 * time.Second, Log: slog.New(slog.NewTextHandler(log, nil))})
		c := n.conn(grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<20)) // that does not grow
		text := n.open(plan).Plan
		stalled := make([]*trainer, 5)
		for i := range stalled {
			stalled[i] = n.fetch(c)
			stalled[i].start(text)
			stalled[i].want(1, rangeOf(0, 0, 16))
			stalled[i].want(2, rangeOf(0, 0, 16))
		}
		beside := n.fetch(c)
		beside.start(text)
		for id := range uint64(30) { // this one goes on, so the connection stays
			beside.want(id+1, rangeOf(0, 0, 8))
			if a := beside.mustNext(); a.failure != nil {
				t.Fatal(a.failure)
			}
			time.Sleep(time.Second)
		}
		if _, lent := n.Memory(); n.Streams() != 1 || lent == 0 {
			t.Errorf("%d streams, %d bytes are lent: nothing is held", n.Streams(), lent)
		}
		if err := beside.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if text := log.String(); strings.Count(text, "connection closed") != 1 {
			t.Errorf("the connection is not closed once:\n%s", text)
		}
	})
}

// A slot must not be lent again while a piece of it waits to be written to the network: its bytes would be another
// batch's.
func TestSlotsAreNotReusedTooEarly(t *testing.T) {
	n := newNode(t, &servertest.Engine{Height: 100, Width: 100}, server.Options{})
	tr := n.started()
	const wants, ahead = 300, 3
	for id := range uint64(ahead) {
		tr.want(id+1, rangeOf(0, 20*id, 20))
	}
	for id := uint64(ahead); id < wants; id++ {
		if a := tr.mustNext(); a.failure != nil { // mustNext checks the checksum
			t.Fatal(a.failure)
		}
		tr.want(id+1, rangeOf(0, 20*id, 20))
	}
	if used, _ := n.Memory(); used > 10*ahead*600_000 {
		t.Errorf("%d bytes of slots for %d batches of 600,000 at a time", used, ahead)
	}
	tr.cancel()
	n.settled()
}
