package server_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// neighbour is a well-behaved job beside an attack. Whatever the attack does, its batches come, and are right.
type neighbour struct {
	*trainer
	id uint64
}

// beside starts a neighbour.
func (g *guarded) beside(s shown) *neighbour {
	g.t.Helper()
	stream, err := pb.NewFeedClient(g.dial(s)).Fetch(s.context(g.t))
	if err != nil {
		g.t.Fatal(err)
	}
	n := &neighbour{trainer: &trainer{t: g.t, stream: stream, cancel: func() {}}}
	n.start(plan)
	n.batches(1)
	return n
}

// batches fetches some and checks every sample's number; next has checked the sum of all bytes.
func (n *neighbour) batches(count int) {
	n.t.Helper()
	for range count {
		n.id++
		n.want(n.id, rangeOf(0, n.id*8, 8))
		a := n.mustNext()
		if a.failure != nil || a.id != n.id {
			n.t.Fatalf("the job beside: batch %d: %v", n.id, a.failure)
		}
		index := a.header.Fields[2]
		for i := range uint64(8) {
			if got := binary.LittleEndian.Uint64(a.data[index.Offset+8*i:]); got != (n.id*8+i)%1000 {
				n.t.Fatalf("the job beside: sample %d of batch %d is %d", i, n.id, got)
			}
		}
	}
}

// wire is a connection that speaks HTTP/2 as badly as it likes.
type wire struct {
	net.Conn
	*http2.Framer
	t       testing.TB
	block   bytes.Buffer
	hpack   *hpack.Encoder
	decoder *hpack.Decoder
}

func (g *guarded) wire() *wire {
	g.t.Helper()
	w, err := g.tryWire()
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { w.Close() })
	return w
}

func (g *guarded) tryWire() (*wire, error) {
	c, err := net.Dial("tcp", g.addr)
	if err != nil {
		return nil, err
	}
	return newWire(g.t, c), c.SetDeadline(time.Now().Add(time.Minute))
}

func newWire(t testing.TB, c net.Conn) *wire {
	w := &wire{Conn: c, Framer: http2.NewFramer(c, c), t: t}
	w.hpack, w.decoder = hpack.NewEncoder(&w.block), hpack.NewDecoder(4096, nil)
	return w
}

// hello is how a connection begins.
func (w *wire) hello() *wire {
	w.t.Helper()
	if _, err := io.WriteString(w, http2.ClientPreface); err != nil {
		w.t.Fatal(err)
	}
	if err := w.WriteSettings(); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// call begins a call; more are headers, in pairs.
func (w *wire) call(id uint32, method string, more ...string) error {
	w.block.Reset()
	fields := append([]string{
		":method", "POST", ":scheme", "http", ":path", "/feedwater.v1.Feed/" + method, ":authority", "node",
		"content-type", "application/grpc", "te", "trailers",
	}, more...)
	for i := 0; i < len(fields); i += 2 {
		if err := w.hpack.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			return err
		}
	}
	const most = 16 << 10
	block := w.block.Bytes()
	first := block[:min(len(block), most)]
	block = block[len(first):]
	err := w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndHeaders: len(block) == 0})
	for err == nil && len(block) > 0 {
		part := block[:min(len(block), most)]
		block = block[len(part):]
		err = w.WriteContinuation(id, len(block) == 0, part)
	}
	return err
}

// message sends one of gRPC's messages, in frames.
func (w *wire) message(id uint32, compressed bool, b []byte) error {
	head := make([]byte, 5)
	if compressed {
		head[0] = 1
	}
	binary.BigEndian.PutUint32(head[1:], uint32(len(b)))
	all := slices.Concat(head, b)
	for {
		part := all[:min(len(all), 16<<10)]
		all = all[len(part):]
		if err := w.WriteData(id, len(all) == 0, part); err != nil || len(all) == 0 {
			return err
		}
	}
}

// status reads until the answer of a call, 0: of any, or the end of the connection. What the node says before is left
// alone.
func (w *wire) status(id uint32) (codes.Code, string) {
	w.t.Helper()
	code, message := codes.Code(1000), ""
	w.decoder.SetEmitFunc(func(f hpack.HeaderField) {
		switch f.Name {
		case "grpc-status":
			code = 0
			for _, d := range f.Value {
				code = 10*code + codes.Code(d-'0')
			}
		case "grpc-message":
			message = f.Value
		}
	})
	for {
		f, err := w.ReadFrame()
		if err != nil {
			return codes.Unavailable, "the connection ended: " + err.Error()
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			code = 1000
			if _, err := w.decoder.Write(f.HeaderBlockFragment()); err != nil {
				w.t.Fatal(err)
			}
			if (f.StreamID == id || id == 0) && code != 1000 {
				return code, message
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == id {
				return codes.Aborted, "reset: " + f.ErrCode.String()
			}
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = w.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = w.WritePing(true, f.Data)
			}
		}
	}
}

// Every string that a trainer can send, with every trick: none leads out of a root, and none is repeated at length.
func TestPathTricksInEveryString(t *testing.T) {
	g := unguarded(t, &servertest.Engine{}, server.Options{})
	job := g.beside(shown{})
	feed := pb.NewFeedClient(g.dial(shown{}))
	tricks := []string{
		"..", "../..", "../../etc/passwd", "/etc/passwd", "a/../../..", `..\..\windows`, "%2e%2e/%2e%2e", "..%00", "\u2024\u2024/", "file:///etc/passwd", "http://169.254.169.254/latest",
		"s3://bucket/key", "~root", "$HOME", "`id`", "$(id)", "'; drop table", "{{7*7}}", "\x00", "a\x00b", "\n\r", "photos/..", "./..", "//", "C:\\", "\\\\host\\share",
		strings.Repeat("../", 1000), strings.Repeat("a", 100_000), strings.Repeat("é", 50_000), strings.Repeat("a/", 50_000), "nul", "COM1", " ", "*", "?", "\ufeff",
	}
	text := func(v string) string {
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\x00", `\u0000`, "\n", `\n`, "\r", `\r`).Replace(v)
	}
	for _, trick := range tricks {
		for field, r := range map[string]*pb.OpenRequest{
			"root":        {Plan: `{"source": {"root": "` + text(trick) + `"}}`},
			"path":        {Plan: `{"source": {"root": "photos", "path": "` + text(trick) + `"}}`},
			"fingerprint": {Plan: `{"source": {"fingerprint": "` + text(trick) + `"}}`},
			"both":        {Plan: `{"source": {"path": "` + text(trick) + `"}}`},
			"reference":   {Plan: `{"source": {"root": "photos"}, "reference": "` + text(trick) + `"}`},
			"on_error":    {Plan: `{"source": {"root": "photos"}, "on_error": "` + text(trick) + `"}`},
			"fields":      {Plan: `{"source": {"root": "photos"}, "fields": ["` + text(trick) + `"]}`},
			"member":      {Plan: `{"source": {"root": "photos"}, "` + text(trick) + `": 1}`},
			"op":          {Plan: `{"source": {"root": "photos"}, "transforms": [{"op": "` + text(trick) + `"}]}`},
			"argument":    {Plan: `{"source": {"root": "photos"}, "transforms": [{"op": "Resize", "size": 8, "` + text(trick) + `": 1}]}`},
			"value":       {Plan: `{"source": {"root": "photos"}, "transforms": [{"op": "Resize", "size": 8, "interpolation": "` + text(trick) + `"}]}`},
			"plan":        {Plan: trick},
			"numerics":    {Plan: plan, Numerics: "n" + trick},
		} {
			_, err := feed.Open(t.Context(), r)
			s := status.Convert(err)
			switch s.Code() {
			case codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition:
			case codes.OK:
				if field != "path" || trick != "//" && !strings.HasPrefix(trick, "photos") {
					t.Errorf("%s: %.40q is taken", field, trick)
				}
			default:
				t.Errorf("%s: %.40q: %v", field, trick, s.Code())
			}
			if size := proto.Size(s.Proto()); size > 12<<10 {
				t.Errorf("%s: %.40q is answered with %d bytes", field, trick, size)
			}
			if strings.Contains(s.Message(), "root:x:0") {
				t.Errorf("%s: %.40q read a file", field, trick)
			}
		}
		if _, err := feed.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan, Job: trick}); err != nil != (len(trick) > 256) {
			t.Errorf("job %.40q: %v", trick, err)
		}
	}
	job.batches(3)
}

// Plans that are too long or ask for too much are refused before anything is made of them.
func TestHugePlans(t *testing.T) {
	g := unguarded(t, &servertest.Engine{}, server.Options{})
	job := g.beside(shown{})
	feed := pb.NewFeedClient(g.dial(shown{}))
	op := `{"op": "RandomHorizontalFlip"}`
	chain := func(n int) string {
		return `{"source": {"root": "photos"}, "transforms": [` + strings.TrimSuffix(strings.Repeat(op+",", n), ",") + `]}`
	}
	nested := op
	for range 20 {
		nested = `{"op": "Compose", "transforms": [` + nested + `]}`
	}
	wide := op
	for range 2 {
		wide = `{"op": "Compose", "transforms": [` + strings.TrimSuffix(strings.Repeat(wide+",", 99), ",") + `]}`
	}
	for name, c := range map[string]struct {
		text string
		code codes.Code
	}{
		"100 MB":         {`{"source": {"root": "` + strings.Repeat("x", 100<<20) + `"}}`, codes.ResourceExhausted},
		"3 MB":           {`{"source": {"root": "` + strings.Repeat("x", 3<<20) + `"}}`, codes.InvalidArgument},
		"10,000 ops":     {chain(10_000), codes.InvalidArgument},
		"100 ops":        {chain(100), codes.OK},
		"101 ops":        {chain(101), codes.InvalidArgument},
		"20 deep":        {`{"source": {"root": "photos"}, "transforms": [` + nested + `]}`, codes.InvalidArgument},
		"9,801 nested":   {`{"source": {"root": "photos"}, "transforms": [` + wide + `]}`, codes.InvalidArgument},
		"deep JSON":      {strings.Repeat(`{"a":`, 100_000), codes.InvalidArgument},
		"deep list":      {strings.Repeat(`[`, 1_000_000), codes.InvalidArgument},
		"many members":   {`{` + strings.Repeat(`"a":1,`, 100_000) + `"b":1}`, codes.InvalidArgument},
		"huge number":    {`{"source": {"root": "photos"}, "seed": ` + strings.Repeat("9", 1000) + `}`, codes.InvalidArgument},
		"huge limit":     {`{"source": {"root": "photos"}, "limits": {"pixels": 9000000000000000000}}`, codes.InvalidArgument},
		"huge picture":   {`{"source": {"root": "photos"}, "transforms": [{"op": "Resize", "size": [65500, 65500]}]}`, codes.InvalidArgument},
		"huge numerator": {`{"source": {"root": "photos"}, "transforms": [{"op": "Resize", "size": 1e300}]}`, codes.InvalidArgument},
	} {
		_, err := feed.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: c.text})
		if status.Code(err) != c.code {
			t.Errorf("%s: %.200v, want %s", name, err, c.code)
		}
	}
	job.batches(3)
}

// A million wants: those beyond what a stream may hold are refused; who does not read his answers loses the stream.
func TestMillionWants(t *testing.T) {
	g := unguarded(t, &servertest.Engine{Delay: hang}, server.Options{HostShare: unbounded})
	job := g.beside(shown{})
	s, err := pb.NewFeedClient(g.dial(shown{}, grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))).Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tr := &trainer{t: t, stream: s, cancel: func() {}}
	tr.start(plan)
	until(t, "there is no stream", func() bool { return g.Streams() == 2 })
	sent := make(chan int, 1)
	go func() {
		for id := range 1_000_000 {
			if s.Send(wantOf(uint64(id+1), rangeOf(9, 0, 1))) != nil {
				sent <- id
				return
			}
		}
		sent <- 1_000_000
	}()
	until(t, "the stream is not ended", func() bool { return g.Streams() == 1 }) // the neighbour's
	refused := 0
	for err == nil {
		var a *answer
		if a, err = tr.next(); err == nil && a.failure.GetReason() == pb.Reason_REASON_BUSY {
			refused++
		}
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("ended with %v after %d refusals", err, refused)
	}
	if n := <-sent; n == 1_000_000 {
		t.Error("a million wants are taken")
	}
	if used, _ := g.Memory(); used > 8<<20 {
		t.Errorf("%d bytes of slots", used)
	}
	until(t, "wants are left", func() bool { return g.engine.Making() == 0 })
	job.batches(3)
}

// Calls that begin and say nothing, or say it a byte at a time, are ended; those who mean it are not.
func TestSlowLoris(t *testing.T) {
	g := unguarded(t, &servertest.Engine{}, server.Options{HelloTimeout: 300 * time.Millisecond})
	job := g.beside(shown{})
	before := runtime.NumGoroutine()
	w := g.wire().hello()
	const calls = 200
	for i := range uint32(calls) {
		method := []string{"Open", "Fetch", "Replay"}[i%3]
		if err := w.call(2*i+1, method); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // the head of a message that does not come
			if err := w.WriteData(2*i+1, false, []byte{0, 0, 0, 16, 0, 'x'}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if code, message := w.status(0); code != codes.DeadlineExceeded && code != codes.Canceled {
		t.Errorf("a call that says nothing: %v %s", code, message)
	}
	until(t, "calls that say nothing are kept", func() bool { return runtime.NumGoroutine() < before+20 })
	job.batches(3) // it began long ago
	silent := g.wire()
	if _, err := io.WriteString(silent, http2.ClientPreface[:10]); err != nil {
		t.Fatal(err)
	}
	job.batches(3)
}

// Calls that are begun and reset as fast as a connection carries them.
func TestRapidReset(t *testing.T) {
	g := unguarded(t, &servertest.Engine{}, server.Options{HostShare: unbounded})
	job := g.beside(shown{})
	before := runtime.NumGoroutine()
	most := 0
	for range 3 {
		w := g.wire().hello()
		go func() { _, _ = io.Copy(io.Discard, w.Conn) }() // ends with the connection
		for i := range uint32(10_000) {
			if w.call(2*i+1, "Fetch") != nil || w.WriteRSTStream(2*i+1, http2.ErrCodeCancel) != nil {
				break // the node has hung up, which it may
			}
			if i%1000 == 0 {
				most = max(most, runtime.NumGoroutine())
				job.batches(1)
			}
		}
		w.Close()
	}
	if most > before+8*256 { // four of each call that a connection may have at once, and of those just ended
		t.Errorf("%d goroutines", most)
	}
	until(t, "goroutines are left", func() bool { return runtime.NumGoroutine() < before+10 })
	until(t, "streams are left", func() bool { return g.Streams() == 1 })
	job.batches(3)
}

// A peer that speaks garbage, at every depth of the protocol.
func TestGarbageOnTheWire(t *testing.T) {
	g := unguarded(t, &servertest.Engine{}, server.Options{HostShare: unbounded})
	job := g.beside(shown{})
	r := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	for range 100 {
		w := g.wire()
		_, _ = w.Write(noise(1 + r.IntN(4096)))
		w.Close()
		w = g.wire().hello()
		_, _ = w.Write(noise(1 + r.IntN(4096)))
		w.Close()
		w = g.wire().hello()
		_ = w.call(1, "Fetch")
		for range 10 { // frames of a kind and content by chance
			_ = w.WriteRawFrame(http2.FrameType(r.IntN(12)), http2.Flags(r.IntN(256)), uint32(r.IntN(4)), noise(r.IntN(300)))
		}
		w.Close()
	}
	for _, c := range []struct {
		name string
		do   func(*wire) error
		code codes.Code
	}{
		{"a message that is no protobuf", func(w *wire) error { return errors.Join(w.call(1, "Open"), w.message(1, false, noise(100))) }, codes.Internal},
		{"a stream of them", func(w *wire) error {
			return errors.Join(w.call(1, "Fetch"), w.message(1, false, bytes.Repeat([]byte{0xff}, 100)))
		}, codes.Internal},
		{"a method that is not there", func(w *wire) error { return errors.Join(w.call(1, "Delete"), w.message(1, false, nil)) }, codes.Unimplemented},
		{"half a message", func(w *wire) error {
			return errors.Join(w.call(1, "Open"), w.WriteData(1, true, []byte{0, 0, 0, 9, 9, 1}))
		}, codes.Internal},
		{"nothing", func(w *wire) error { return errors.Join(w.call(1, "Open"), w.WriteData(1, true, nil)) }, codes.Internal},
		{"a length of 4 GiB", func(w *wire) error {
			return errors.Join(w.call(1, "Open"), w.WriteData(1, false, []byte{0, 255, 255, 255, 255}))
		}, codes.ResourceExhausted},
	} {
		w := g.wire().hello()
		if err := c.do(w); err != nil {
			t.Fatal(err)
		}
		if code, message := w.status(1); code != c.code {
			t.Errorf("%s: %v %q, want %v", c.name, code, message, c.code)
		}
	}
	job.batches(3)
}

// Headers beyond any reason: one that is huge, many, and many that come without an end.
func TestOversizeHeaders(t *testing.T) {
	g := unguarded(t, &servertest.Engine{}, server.Options{})
	job := g.beside(shown{})
	for name, more := range map[string][]string{
		"huge": {"x-huge", strings.Repeat("x", 1<<20)},
		"many": strings.Split(strings.TrimSuffix(strings.Repeat("x-many,y,", 10_000), ","), ","),
	} {
		w := g.wire().hello()
		if err := w.call(1, "Open", more...); err != nil {
			continue // the node has hung up
		}
		_ = w.message(1, false, nil)
		if code, message := w.status(1); code == codes.OK || code == codes.InvalidArgument {
			t.Errorf("%s: %v %s", name, code, message)
		}
	}
	w := g.wire().hello()
	go func() { _, _ = io.Copy(io.Discard, w.Conn) }()
	err := w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}})
	for i := 0; err == nil; i++ {
		if i > 1<<16 {
			t.Fatal("1 GiB of headers is taken")
		}
		err = w.WriteContinuation(1, false, make([]byte, 16<<10))
	}
	job.batches(3)
}

// Compressed messages are not taken at all, however small or large they are.
func TestCompressedBomb(t *testing.T) {
	g := unguarded(t, &servertest.Engine{}, server.Options{})
	job := g.beside(shown{})
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 16<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, c := range []struct {
		encoding string
		code     codes.Code
	}{{"gzip", codes.Unimplemented}, {"identity", codes.Internal}, {"deflate", codes.Unimplemented}} {
		for _, method := range []string{"Open", "Fetch", "Replay"} {
			w := g.wire().hello()
			if err := errors.Join(w.call(1, method, "grpc-encoding", c.encoding), w.message(1, true, bomb.Bytes())); err != nil {
				t.Fatal(err)
			}
			if code, message := w.status(1); code != c.code {
				t.Errorf("%s in %s: %v %s", method, c.encoding, code, message)
			}
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("%d bytes were allocated for %d", grown, bomb.Len())
	}
	job.batches(3)
}

// More connections than one address may have are closed, and those that are there stay.
func TestConnectionsAreBounded(t *testing.T) {
	log := &lines{}
	g := unguarded(t, &servertest.Engine{}, server.Options{HostConnections: 10, Log: slog.New(slog.NewTextHandler(log, nil))})
	job := g.beside(shown{})
	taken := 0
	var all []*wire
	for range 50 {
		w := g.wire()
		_, _ = io.WriteString(w, http2.ClientPreface)
		_ = w.WriteSettings()
		if _, err := w.ReadFrame(); err == nil {
			taken++
		}
		all = append(all, w)
	}
	if taken != 9 {
		t.Errorf("%d connections beside one are taken of 10", taken)
	}
	if k := (&node{Server: g.Server, t: t}).counted("refused_connections_total"); k != 41 || !strings.Contains(log.String(), "--max-connections") {
		t.Errorf("%d are counted as refused, not 41; the log says %s", k, log)
	}
	job.batches(3)
	for _, w := range all {
		w.Close()
	}
	until(t, "places are not given back", func() bool { return g.tryOpen(shown{}, "photos") == nil })
}

// A flood of calls of one address is answered as busy, and does not use up what another address may.
func TestFloodOfCalls(t *testing.T) {
	g := unguarded(t, &servertest.Engine{}, server.Options{})
	job := g.beside(shown{})
	taken, err := g.FloodCalls(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, 100_000)
	if status.Code(err) != codes.ResourceExhausted || taken < 1000 {
		t.Errorf("after %d calls: %v", taken, err)
	}
	job.batches(3) // its stream is open: calls are counted, not what comes over them
}
