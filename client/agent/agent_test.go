package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/agent/lasthop"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testSide    = 3 // pictures of 3×3 pixels
	testPixels  = testSide * testSide * 3
	testSamples = 1000
)

// fakeNode makes pictures whose bytes say which sample they are of.
type fakeNode struct {
	images bool          // hands images over one by one
	ragged bool          // sample i is i%3+1 pixels wide
	gate   chan struct{} // if set, attempts wait for it to close
	late   bool          // writes to the memory of an attempt that is cancelled, before it answers
	broken int           // samples said not to decode
	pulses chan *pb.Pulse
	dues   chan time.Time // of attempts
	steps  chan uint64    // likewise
	index  *pb.IndexUse   // of its batches
}

func (n *fakeNode) Addr() string { return "fake" }
func (n *fakeNode) Close() error { return nil }

func (n *fakeNode) Open(_ context.Context, r *pb.OpenRequest) (*pb.OpenResponse, error) {
	side := uint64(testSide)
	if n.ragged {
		side = 0
	}
	return &pb.OpenResponse{
		Plan: r.Plan, Protocol: pb.Protocol, PlanHash: "plan", Numerics: "n", Fingerprint: "f", Samples: testSamples, Workers: 2,
		Classes: []*pb.Class{{Name: []byte("cat"), Samples: testSamples}},
		Fields: []*pb.Field{
			{Name: "image", Dtype: "uint8", Shape: []uint64{side, side, 3}},
			{Name: "label", Dtype: "int64"}, {Name: "index", Dtype: "int64"},
		},
	}, nil
}

func (n *fakeNode) Replay(_ context.Context, r *pb.ReplayRequest) (*pb.ReplayResponse, error) {
	answer := &pb.ReplayResponse{}
	for _, i := range r.Name.GetList().GetIndices() {
		answer.Samples = append(answer.Samples, &pb.Sample{
			Key: fmt.Append(nil, "k", i), Index: i, Height: 1, Width: 2, Image: bytes.Repeat([]byte{byte(i)}, 6),
			Draws: []*pb.Draw{{Op: "Crop", Applied: true, Parameters: `{"top": 4}`}},
		})
	}
	return answer, nil
}

func (n *fakeNode) Fetch(context.Context, *pb.Start, func(*pb.Notice)) (node.Stream, error) {
	return &fakeStream{node: n, ended: make(chan struct{}), cancels: map[*node.Attempt]chan struct{}{}}, nil
}

type fakeStream struct {
	node    *fakeNode
	ended   chan struct{}
	running sync.WaitGroup
	once    sync.Once

	mu      sync.Mutex
	closed  bool
	cancels map[*node.Attempt]chan struct{}
}

func (s *fakeStream) Heard() time.Time       { return time.Now() }
func (s *fakeStream) Ended() <-chan struct{} { return s.ended }
func (s *fakeStream) Err() error             { return nil }
func (s *fakeStream) Pulse(p *pb.Pulse) {
	if s.node.pulses != nil {
		s.node.pulses <- p
	}
}

func (s *fakeStream) Send(a *node.Attempt) {
	if s.node.dues != nil {
		s.node.dues <- a.Due
	}
	if s.node.steps != nil {
		s.node.steps <- a.Step
	}
	cancelled := make(chan struct{})
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		a.Done(node.Answer{Err: client.ErrClosed})
		return
	}
	s.cancels[a] = cancelled
	defer s.mu.Unlock() // Close waits for what runs: it must not begin to between here and there
	s.running.Go(func() {
		if s.node.gate != nil {
			select {
			case <-s.node.gate:
			case <-cancelled:
				if s.node.late {
					copy(a.Dst, "late")
				}
				a.Done(node.Answer{Err: node.ErrCancelled})
				return
			}
		}
		a.Done(s.node.make(a))
	})
}

func (s *fakeStream) Cancel(a *node.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.cancels[a]; c != nil {
		close(c)
		delete(s.cancels, a)
	}
}

func (s *fakeStream) Close() {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		for a, c := range s.cancels {
			close(c)
			delete(s.cancels, a)
		}
		s.mu.Unlock()
		s.running.Wait()
		close(s.ended)
	})
}

// make fills a batch as a node would.
func (n *fakeNode) make(a *node.Attempt) node.Answer {
	indices := a.Name.GetList().GetIndices()
	if r := a.Name.GetRange(); r != nil {
		for i := range uint64(r.Count) {
			indices = append(indices, (r.Position+i)%testSamples)
		}
	}
	if len(indices) > 0 && indices[0] == 13 {
		return node.Answer{Failure: &pb.Failure{
			Code: 15, Reason: pb.Reason_REASON_SAMPLE, Message: "broken",
			SampleError: &pb.SampleError{Index: 13, Key: []byte("cat/13.jpg"), Op: "decode", Cause: "truncated"},
		}}
	}
	count := len(indices)
	size := func(i uint64) int {
		if n.ragged {
			return 3 * (int(i)%3 + 1)
		}
		return testPixels
	}
	pixels := 0
	for _, i := range indices {
		pixels += size(i)
	}
	image := &pb.Field{Name: "image", Dtype: "uint8", Shape: []uint64{uint64(count), testSide, testSide, 3}}
	label := &pb.Field{Name: "label", Dtype: "int64", Shape: []uint64{uint64(count)}, Offset: uint64(batch.AlignUp(pixels))}
	if n.ragged {
		image.Offset, label.Offset = uint64(2*batch.AlignUp(8*count)), 0
		image.Shape = []uint64{uint64(count), 0, 0, 3}
		image.RaggedOffsets = []uint64{0}
	}
	index := &pb.Field{Name: "index", Dtype: "int64", Shape: []uint64{uint64(count)}, Offset: label.Offset + uint64(batch.AlignUp(8*count))}
	total := max(int(image.Offset)+pixels, int(index.Offset)+8*count)
	at := int(image.Offset)
	for k, i := range indices {
		pix := bytes.Repeat([]byte{byte(i)}, size(i))
		pix[1]++ // channels differ
		if n.images && a.Image != nil {
			a.Image(0, k, pix)
		} else {
			copy(a.Dst[at:], pix)
		}
		at += len(pix)
		if n.ragged {
			image.RaggedOffsets = append(image.RaggedOffsets, uint64(at)-image.Offset)
			image.RaggedShapes = append(image.RaggedShapes, 1, uint32(len(pix)/3), 3)
		}
		binary.LittleEndian.PutUint64(a.Dst[int(label.Offset)+8*k:], i%7)
		binary.LittleEndian.PutUint64(a.Dst[int(index.Offset)+8*k:], i)
	}
	header := &pb.Header{Fields: []*pb.Field{image, label, index}, Index: n.index}
	for i := range n.broken {
		header.Errors = append(header.Errors, &pb.SampleError{
			Offset: uint32(i), Index: uint64(1_000_000 + i), Key: fmt.Appendf(nil, "cat/a rather long name of a file %d.jpg", i), Op: "decode",
			Cause: strings.Repeat("not a picture at all; ", 10), Substituted: i%2 == 1, Substitute: uint64(i),
		})
	}
	return node.Answer{Header: header, Data: a.Dst[:total], Imaged: n.images && a.Image != nil}
}

// trainer is the other end of the sockets.
type trainer struct {
	t       *testing.T
	agent   *Agent
	control *net.UnixConn
	loader  *net.UnixConn
	ended   chan error
	seq     uint32
	slots   []byte
	fields  map[string]int // offsets
}

func pair(t *testing.T) (*os.File, *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := packetConn(os.NewFile(uintptr(fds[0]), "ours"))
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[1]), "theirs"), ours
}

func memory(t *testing.T, size int) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "memory")
	if err := f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	return f
}

// start runs an agent over a node and connects one Loader.
func start(t *testing.T, n node.Node) *trainer {
	t.Helper()
	return startWith(t, n, Options{})
}

// startWith is start with some options set.
func startWith(t *testing.T, n node.Node, o Options) *trainer {
	t.Helper()
	theirs, control := pair(t)
	o.Control, o.Log = theirs, slog.New(slog.DiscardHandler)
	if o.Connect == nil {
		o.Connect = func(_ context.Context, p Plan) (*client.Fleet, error) {
			return client.New(client.Options{Plan: string(p.Text), Local: n, StartTimeout: p.StartTimeout, Timeout: p.Timeout, Log: p.Log})
		}
	}
	a := New(o)
	c := &trainer{t: t, agent: a, control: control, ended: make(chan error, 1), fields: map[string]int{}}
	go func() { c.ended <- a.Run(context.Background()) }()
	t.Cleanup(func() {
		control.Close()
		if err := <-c.ended; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	far, near := pair(t)
	c.loader = near
	c.send(control, []byte{kindLoader}, far)
	t.Cleanup(func() { near.Close() })
	c.send(near, a.options.newGreeting().toPacket())
	if b := c.receive(); b[0] != kindVersion {
		t.Fatalf("a greeting is answered by %q", b)
	}
	return c
}

func (c *trainer) send(conn *net.UnixConn, packet []byte, files ...*os.File) {
	c.t.Helper()
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	var rights []byte
	if fds != nil {
		rights = unix.UnixRights(fds...)
	}
	if _, _, err := conn.WriteMsgUnix(packet, rights, nil); err != nil {
		c.t.Fatal(err)
	}
	closeAll(files)
}

// receive returns the next packet that is no notice.
func (c *trainer) receive() []byte {
	c.t.Helper()
	b := make([]byte, maxPacket)
	for {
		n, err := c.loader.Read(b)
		if err != nil {
			c.t.Fatal(err)
		}
		if b[0] != kindNotice {
			return b[:n]
		}
	}
}

// call makes a call; it fails the test if the answer is an error, unless fails is set.
func (c *trainer) call(method string, params any, fails bool, files ...*os.File) (map[string]any, []byte) {
	c.t.Helper()
	result := memory(c.t, 0)
	fd, err := unix.Dup(int(result.Fd()))
	if err != nil {
		c.t.Fatal(err)
	}
	keep := os.NewFile(uintptr(fd), "result")
	defer keep.Close()
	c.seq++
	packet := binary.LittleEndian.AppendUint32([]byte{kindCall}, c.seq)
	text := mustJSON(map[string]any{"method": method, "params": params})
	if len(packet)+len(text) <= maxPacket {
		packet = append(packet, text...)
	} else if _, err := keep.WriteAt(text, 0); err != nil {
		c.t.Fatal(err)
	}
	c.send(c.loader, packet, append([]*os.File{result}, files...)...)
	a := c.receive()
	if a[0] != kindAnswer || binary.LittleEndian.Uint32(a[1:]) != c.seq {
		c.t.Fatalf("the answer to %s is %q", method, a)
	}
	all, err := io.ReadAll(io.NewSectionReader(keep, 0, 1<<30))
	if err != nil {
		c.t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(a[9:])
	var v map[string]any
	if err := json.Unmarshal(all[:n], &v); err != nil {
		c.t.Fatal(err)
	}
	if ok := a[5] == 1; ok == fails {
		c.t.Fatalf("%s: %v", method, v)
	}
	return v, all[n:]
}

const testStride = 1 << 16

// open opens a plan and hands slots over.
func (c *trainer) open(batch int, hop *lasthop.Hop) {
	c.t.Helper()
	c.call("open", map[string]any{"plan": map[string]any{}, "timeout": 60, "start_timeout": 60}, false)
	c.addSlots(batch, hop)
}

func (c *trainer) addSlots(batch int, hop *lasthop.Hop) {
	c.t.Helper()
	f := memory(c.t, 4*testStride)
	m, err := unix.Mmap(int(f.Fd()), 0, 4*testStride, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { unix.Munmap(m) })
	c.slots = m
	v, _ := c.call("slots", map[string]any{"count": 4, "stride": testStride, "batch": batch, "last_hop": lasthop.Hops{"image": hop}}, false, f)
	for _, f := range v["fields"].([]any) {
		field := f.(map[string]any)
		c.fields[field["name"].(string)] = int(field["offset"].(float64))
	}
}

func wantPacket(wants ...want) []byte {
	b := []byte{kindWants}
	for _, w := range wants {
		b = binary.LittleEndian.AppendUint64(b, w.id)
		b = binary.LittleEndian.AppendUint64(b, w.position)
		for _, v := range []uint32{w.epoch, w.count, w.slot, w.flags} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		b = binary.LittleEndian.AppendUint64(b, w.ahead)
		b = binary.LittleEndian.AppendUint64(b, 0)
		b = binary.LittleEndian.AppendUint64(b, w.step)
	}
	return b
}

// done waits for the answer to a want and returns its slot and JSON.
func (c *trainer) done(w want) ([]byte, string) {
	c.t.Helper()
	a := c.receive()
	if a[0] != kindDone || binary.LittleEndian.Uint64(a[1:]) != w.id || binary.LittleEndian.Uint32(a[9:]) != w.slot || binary.LittleEndian.Uint32(a[13:]) != w.count {
		c.t.Fatalf("the answer to want %d is %q", w.id, a)
	}
	return c.slots[int(w.slot)*testStride:][:testStride], string(a[doneBytes:])
}

func (c *trainer) indices(slot []byte, n int) []uint64 {
	var all []uint64
	for i := range n {
		all = append(all, binary.LittleEndian.Uint64(slot[c.fields["index"]+8*i:]))
	}
	return all
}

func TestBatchArrivesInItsSlot(t *testing.T) {
	c := start(t, &fakeNode{})
	c.open(5, nil)
	full, short := want{id: 1, position: 20, count: 5, slot: 2}, want{id: 2, position: 25, count: 2, slot: 0}
	for _, w := range []want{full, short} {
		c.send(c.loader, wantPacket(w))
		slot, _ := c.done(w)
		for i, index := range c.indices(slot, int(w.count)) {
			if index != w.position+uint64(i) || slot[i*testPixels] != byte(index) || slot[i*testPixels+1] != byte(index)+1 {
				t.Errorf("want %d, sample %d: index %d, pixel %d", w.id, i, index, slot[i*testPixels])
			}
			if label := binary.LittleEndian.Uint64(slot[c.fields["label"]+8*i:]); label != index%7 {
				t.Errorf("want %d, sample %d: label %d", w.id, i, label)
			}
		}
	}
}

// What indexes a batch's pictures had is told beside it: nothing by nodes that do not know.
func TestIndexUseIsTold(t *testing.T) {
	for _, c := range []struct {
		index *pb.IndexUse
		want  []byte
	}{
		{nil, make([]byte, 32)},
		{&pb.IndexUse{Hits: 1, Copies: 2, Misses: 3, MissingCopies: 4, MissingCopyBytes: 5 << 32, MadeCopies: 6, Kept: 7}, []byte{0: 1, 4: 2, 8: 3, 12: 4, 20: 5, 24: 6, 28: 7, 31: 0}},
	} {
		l := start(t, &fakeNode{index: c.index})
		l.open(5, nil)
		l.send(l.loader, wantPacket(want{id: 1, count: 5}))
		if a := l.receive(); a[0] != kindDone || !bytes.Equal(a[25:doneBytes], c.want) {
			t.Errorf("%v is told as %v", c.index, a[25:])
		}
	}
}

// The last hop gives the same whether the node hands images over or writes them behind each other, and in every type
// and layout.
func TestLastHop(t *testing.T) {
	table := func(size int, put func(b []byte, c, v int)) string {
		b := make([]byte, 3*256*size)
		for c := range 3 {
			for v := range 256 {
				put(b[(c*256+v)*size:], c, v)
			}
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	value := func(c, v int) int { return v*2 + c }
	float := table(4, func(b []byte, c, v int) { binary.LittleEndian.PutUint32(b, math.Float32bits(float32(value(c, v)))) })
	half := table(2, func(b []byte, c, v int) { binary.LittleEndian.PutUint16(b, uint16(value(c, v))) })
	small := table(1, func(b []byte, c, v int) { b[0] = byte(value(c, v)) })
	for _, hop := range []lasthop.Hop{
		{DType: "float32", Table: float, Layout: "hwc"}, {DType: "float32", Table: float, Layout: "chw"},
		{DType: "bfloat16", Table: half, Layout: "chw"}, {DType: "float16", Table: half}, {DType: "uint8", Table: small, Layout: "chw"},
		{DType: "uint8", Layout: "chw"},
	} {
		for _, images := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %s images=%v table=%v", hop.DType, hop.Layout, images, hop.Table != ""), func(t *testing.T) {
				c := start(t, &fakeNode{images: images})
				c.open(6, &hop)
				size := batch.ElementSize(hop.DType)
				for _, w := range []want{{id: 1, position: 90, count: 6, slot: 3}, {id: 2, position: 30, count: 1, slot: 3}} {
					c.send(c.loader, wantPacket(w))
					slot, _ := c.done(w)
					for i, index := range c.indices(slot, int(w.count)) {
						if index != w.position+uint64(i) {
							t.Fatalf("sample %d has index %d", i, index)
						}
						for p := range testPixels {
							channel, place := p%3, p
							if hop.Layout == "chw" {
								place = channel*testPixels/3 + p/3
							}
							source := int(byte(index))
							if p == 1 {
								source++
							}
							want := value(channel, source)
							if hop.Table == "" {
								want = source
							}
							at := slot[(i*testPixels+place)*size:]
							got := int(at[0])
							switch size {
							case 2:
								got = int(binary.LittleEndian.Uint16(at))
							case 4:
								got = int(math.Float32frombits(binary.LittleEndian.Uint32(at)))
							}
							if got != want && (size != 1 || got != want&255) {
								t.Fatalf("want %d, sample %d, value %d: %d, want %d", w.id, i, p, got, want)
							}
						}
					}
				}
			})
		}
	}
}

func TestListedSamples(t *testing.T) {
	c := start(t, &fakeNode{})
	c.open(4, nil)
	w := want{id: 9, position: 77, count: 3, slot: 1, flags: flagListed}
	slot := c.slots[testStride:]
	for i, index := range []uint64{5, 900, 5} {
		binary.LittleEndian.PutUint64(slot[c.fields["index"]+8*i:], index)
	}
	c.send(c.loader, wantPacket(w))
	got, _ := c.done(w)
	if have := c.indices(got, 3); fmt.Sprint(have) != "[5 900 5]" || got[testPixels] != 900&255 {
		t.Errorf("indices %v, pixel %d", have, got[testPixels])
	}
}

func TestPicturesOfDifferentSizes(t *testing.T) {
	c := start(t, &fakeNode{ragged: true})
	c.open(4, &lasthop.Hop{Layout: "chw"})
	w := want{id: 3, position: 1, count: 3, slot: 0}
	c.send(c.loader, wantPacket(w))
	slot, extra := c.done(w)
	if extra != `{"ragged":{"image":{"offsets":[0,6,15,18],"shapes":[[3,1,2],[3,1,3],[3,1,1]]}}}` {
		t.Errorf("%s", extra)
	}
	if image := slot[c.fields["image"]:]; image[0] != 1 || image[2] != 2 || image[15] != 3 {
		t.Errorf("pixels %v", image[:18])
	}
}

func TestBrokenSample(t *testing.T) {
	c := start(t, &fakeNode{})
	c.open(4, nil)
	c.send(c.loader, wantPacket(want{id: 4, position: 13, count: 2, slot: 0}))
	a := c.receive()
	var f map[string]any
	if err := json.Unmarshal(a[9:], &f); a[0] != kindFailed || err != nil || f["kind"] != "sample" || f["key"] != "cat/13.jpg" || f["index"] != 13.0 || f["node"] != "fake" {
		t.Errorf("%q: %v", a, err)
	}
}

// However many samples of a batch are broken, its answer is one packet: first the words about most of them go, then the
// batch.
func TestManyBrokenSamples(t *testing.T) {
	for _, c := range []struct{ broken, named int }{{1, 1}, {100, 100}, {1000, maxNamedErrors}, {1500, maxNamedErrors}, {3000, 0}} {
		t.Run(fmt.Sprint(c.broken), func(t *testing.T) {
			trainer := start(t, &fakeNode{broken: c.broken})
			trainer.open(4, nil)
			w := want{id: 1, position: 20, count: 4, slot: 2}
			trainer.send(trainer.loader, wantPacket(w))
			if c.named == 0 {
				a := trainer.receive()
				var f map[string]any
				if err := json.Unmarshal(a[9:], &f); a[0] != kindFailed || err != nil || f["kind"] != "data" || !strings.Contains(f["message"].(string), "the first: cat/a rather long name of a file 0.jpg: decode: not a picture") {
					t.Errorf("%q: %v", a, err)
				}
				return
			}
			_, text := trainer.done(w)
			var extra struct{ Errors []sampleError }
			if err := json.Unmarshal([]byte(text), &extra); err != nil || len(extra.Errors) != c.broken {
				t.Fatalf("%d errors, %v", len(extra.Errors), err)
			}
			for i, e := range extra.Errors {
				if e.Offset != uint32(i) || e.Index != uint64(1_000_000+i) || (e.Substitute != nil) != (i%2 == 1) || (e.Key != "") != (i < c.named) || (e.Cause != "") != (i < c.named) {
					t.Fatalf("error %d: %+v", i, e)
				}
			}
		})
	}
}

// Stores that the trainer does not know go with a batch, also with one of which nothing else is to be said.
func TestBatchTellsOfStores(t *testing.T) {
	said := (&delivery{stores: map[string]string{"s": "1"}}).extraJSON(client.Result{Header: &pb.Header{}}, nil)
	if want := `{"stores":{"s":"1"}}`; string(said) != want {
		t.Errorf("%s, want %s", said, want)
	}
	if said := (&delivery{}).extraJSON(client.Result{Header: &pb.Header{}}, nil); said != nil {
		t.Errorf("%s, want nothing", said)
	}
}

func TestCancelledWantIsAnswered(t *testing.T) {
	n := &fakeNode{gate: make(chan struct{})}
	c := start(t, n)
	c.open(4, nil)
	c.send(c.loader, wantPacket(want{id: 1, position: 0, count: 4, slot: 0}, want{id: 2, position: 4, count: 4, slot: 1}))
	c.send(c.loader, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64([]byte{kindCancel}, 1), 99))
	if a := c.receive(); a[0] != kindCancelled || binary.LittleEndian.Uint64(a[1:]) != 1 {
		t.Errorf("%q", a)
	}
	close(n.gate)
	c.done(want{id: 2, position: 4, count: 4, slot: 1})
}

// Bigger slots replace the others for later wants; a want that is out keeps its own.
func TestNewSlots(t *testing.T) {
	n := &fakeNode{gate: make(chan struct{})}
	c := start(t, n)
	c.open(4, nil)
	old := c.slots
	first := want{id: 1, position: 40, count: 4, slot: 3}
	c.send(c.loader, wantPacket(first))
	c.addSlots(8, nil)
	close(n.gate)
	c.done(first)
	if old[3*testStride] != 40 || c.slots[3*testStride] != 0 {
		t.Errorf("pixels %d in the old slot, %d in the new", old[3*testStride], c.slots[3*testStride])
	}
	second := want{id: 2, position: 60, count: 8, slot: 3}
	c.send(c.loader, wantPacket(second))
	if slot, _ := c.done(second); slot[7*testPixels] != 67 {
		t.Errorf("pixel %d", slot[7*testPixels])
	}
}

func TestRefusals(t *testing.T) {
	c := start(t, &fakeNode{})
	refused := func(what string, w want, kind string) {
		t.Helper()
		c.send(c.loader, wantPacket(w))
		if a := c.receive(); a[0] != kindFailed || !strings.Contains(string(a[9:]), `"kind":"`+kind+`"`) {
			t.Errorf("%s: %q", what, a)
		}
	}
	refused("before open", want{id: 1, count: 1}, "bug")
	c.open(4, nil)
	refused("slot out of range", want{id: 2, count: 1, slot: 4}, "bug")
	refused("too many samples", want{id: 3, count: 5}, "room")
	refused("no samples", want{id: 4}, "room")
	if v, _ := c.call("slots", map[string]any{"count": 4, "stride": 64, "batch": 4}, true, memory(t, 4*64)); v["kind"] != "room" || v["bytes"].(float64) < 4*testPixels {
		t.Errorf("%v", v)
	}
	if v, _ := c.call("slots", map[string]any{"count": 4, "stride": testStride, "batch": 4}, true, memory(t, 64)); v["kind"] != "bug" {
		t.Errorf("a file that is too small: %v", v)
	}
	if v, _ := c.call("slots", map[string]any{"count": 1, "stride": testStride, "batch": 4, "last_hop": lasthop.Hops{"image": {DType: "float64"}}}, true, memory(t, testStride)); v["kind"] != "bug" {
		t.Errorf("an unknown type: %v", v)
	}
	c.call("open", map[string]any{"plan": "{}"}, true)
	c.call("nonsense", nil, true)
}

func TestReplayAndStatus(t *testing.T) {
	c := start(t, &fakeNode{})
	c.open(4, nil)
	v, blob := c.call("replay", map[string]any{"indices": []int{7, 8}, "repeats": []int{0, 0}, "pixels": true}, false)
	s := v["samples"].([]any)[1].(map[string]any)
	draw := s["draws"].([]any)[0].(map[string]any)
	if s["key"] != "k8" || s["offset"] != 6.0 || draw["op"] != "Crop" || draw["top"] != 4.0 || !bytes.Equal(blob, []byte{7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8}) {
		t.Errorf("%v, %v", v, blob)
	}
	v, _ = c.call("status", nil, false)
	if n := v["nodes"].([]any)[0].(map[string]any); n["addr"] != "fake" {
		t.Errorf("%v", v)
	}
}

// What does not fit a packet comes in the file for the result.
func TestLongCalls(t *testing.T) {
	c := start(t, &fakeNode{})
	c.open(4, nil)
	for _, n := range []int{10, 20_000} {
		indices := make([]int, n)
		for i := range indices {
			indices[i] = i % testSamples
		}
		v, _ := c.call("replay", map[string]any{"indices": indices, "repeats": make([]int, n)}, false)
		s := v["samples"].([]any)
		if last := s[len(s)-1].(map[string]any); len(s) != n || last["key"] != fmt.Sprint("k", indices[n-1]) {
			t.Errorf("%d samples of %d, the last %v", len(s), n, last)
		}
	}
}

func TestListing(t *testing.T) {
	c := startWith(t, &fakeNode{}, Options{List: func(_ context.Context, folder string) (Listing, error) {
		if folder != "/pictures" {
			return Listing{}, &node.DataError{Path: folder, Message: "missing"}
		}
		return Listing{Fingerprint: "f", Counts: []int{1, 0}, Keys: []byte("a/1.jpg\x00")}, nil
	}})
	v, blob := c.call("listing", map[string]any{"path": "/pictures"}, false)
	if v["fingerprint"] != "f" || fmt.Sprint(v["counts"]) != "[1 0]" || string(blob) != "a/1.jpg\x00" {
		t.Errorf("%v, %q", v, blob)
	}
	if v, _ := c.call("listing", map[string]any{"path": "/none"}, true); v["kind"] != "data" || v["path"] != "/none" {
		t.Errorf("%v", v)
	}
	if v, _ := start(t, &fakeNode{}).call("listing", map[string]any{"path": "/pictures"}, true); v["kind"] != "bug" {
		t.Errorf("%v", v)
	}
}

// When the control socket closes, whatever is out, the agent ends, and leaves no goroutine and no mapping behind. The
// trainer lives on and may look at its batches.
func TestTrainerWantsNoAgent(t *testing.T) {
	for range 20 {
		c := start(t, &fakeNode{gate: make(chan struct{})})
		c.open(4, nil)
		c.send(c.loader, wantPacket(want{id: 1, count: 4, slot: 0}, want{id: 2, count: 4, slot: 1}))
		c.call("status", nil, false) // behind the wants
		copy(c.slots, "still here")
		c.control.Close()
		if err := <-c.ended; err != nil {
			t.Fatal(err)
		}
		c.ended <- nil // for the clean-up
		if string(c.slots[:10]) != "still here" {
			t.Fatal("the slots' memory was taken from a living trainer")
		}
	}
}

// When the trainer ends, whatever tells first, its memory is given back.
func TestTrainerGoesAway(t *testing.T) {
	tells := map[string]func(*trainer, *exec.Cmd){
		"the pidfd":          func(*trainer, *exec.Cmd) {},
		"the control socket": func(c *trainer, dead *exec.Cmd) { awaitDead(t, dead); c.control.Close() },
		"a Loader's socket":  func(c *trainer, dead *exec.Cmd) { awaitDead(t, dead); c.loader.Close(); c.control.Close() },
	}
	for name, tell := range tells {
		t.Run(name, func(t *testing.T) {
			process := exec.Command("cat")
			if _, err := process.StdinPipe(); err != nil {
				t.Fatal(err)
			}
			if err := process.Start(); err != nil {
				t.Fatal(err)
			}
			defer process.Wait()
			o := Options{TrainerPID: process.Process.Pid}
			if name == "the pidfd" {
				fd, err := unix.PidfdOpen(o.TrainerPID, 0)
				if err != nil {
					t.Fatal(err)
				}
				o = Options{Trainer: os.NewFile(uintptr(fd), "pidfd")}
				defer o.Trainer.Close()
			}
			c := startWith(t, &fakeNode{gate: make(chan struct{}), late: true}, o) // batches in the making write on
			c.open(4, nil)
			c.send(c.loader, wantPacket(want{id: 1, count: 4, slot: 0}, want{id: 2, count: 4, slot: 1}))
			c.call("status", nil, false) // behind the wants
			copy(c.slots, "still here")
			if err := process.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			tell(c, process)
			if err := <-c.ended; err != nil {
				t.Fatal(err)
			}
			c.ended <- nil // for the clean-up
			if i := bytes.IndexFunc(c.slots, func(r rune) bool { return r != 0 }); i >= 0 {
				t.Fatalf("the slots' memory was not given back: %q", c.slots[i:i+10])
			}
		})
	}
}

// awaitDead waits until the process has ended, and leaves it to be reaped.
func awaitDead(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
}

// Garbage ends a Loader's socket, and nothing else.
func FuzzPackets(f *testing.F) {
	f.Add(wantPacket(want{id: 1, count: 4}))
	f.Add([]byte{kindCancel, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(append([]byte{kindCall, 0, 0, 0, 0}, `{"method": "open", "params": {"plan": {}}}`...))
	f.Add([]byte("?"))
	f.Fuzz(func(t *testing.T, packet []byte) {
		if len(packet) == 0 || len(packet) > maxPacket {
			return
		}
		c := start(t, &fakeNode{})
		c.open(4, nil)
		c.send(c.loader, packet)
		_ = c.loader.CloseWrite()
	})
}
