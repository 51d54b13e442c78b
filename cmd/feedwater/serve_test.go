package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/pipeline/codec/jpeg/jpegtest"
	"github.com/feedwater-io/feedwater/pipeline/imageindex"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// pictures is a folder of generated pictures: two classes of eight.
func pictures(t testing.TB, seed uint64) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 16 {
		file := filepath.Join(dir, fmt.Sprintf("class%d", i%2), fmt.Sprintf("%02d.jpg", i))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		picture := jpegtest.Photograph(seed*16+uint64(i), i%2, 40+5*i, 80-3*i)
		if err := os.WriteFile(file, jpegtest.Encode(picture, jpegtest.Options{}), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// anyFolder makes a folder that can be served, of which nobody wants anything.
func anyFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

const (
	crops = `{"source": {"root": "photos"}, "seed": 5, "shuffle": true, "transforms": [{"op": "RandomResizedCrop", "size": [64, 64]}]}`
	large = `{"source": {"root": "photos"}, "transforms": [{"op": "Resize", "size": [512, 512]}]}`
	whole = `{"source": {"root": "photos"}, "transforms": []}`
)

// book is a log that can be waited for.
type book struct {
	mu     sync.Mutex
	change sync.Cond
	text   bytes.Buffer
	ended  bool
}

func newBook() *book {
	b := &book{}
	b.change.L = &b.mu
	return b
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.change.Broadcast()
	return b.text.Write(p)
}

func (b *book) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.change.Broadcast()
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// await returns what the expression's group matched, or nothing if the log ends without.
func (b *book) await(expression string) string {
	wanted := regexp.MustCompile(expression)
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if m := wanted.FindStringSubmatch(b.text.String()); m != nil {
			return m[len(m)-1]
		}
		if b.ended {
			return ""
		}
		b.change.Wait()
	}
}

// node is a `feedwater serve` in this process.
type servedNode struct {
	t      testing.TB
	addr   string
	log    *book
	cancel context.CancelFunc // what SIGTERM does
	ended  chan struct{}
	err    error // when ended
}

// start serves until the end of the test; args come behind a port that is free.
func start(t testing.TB, args ...string) *servedNode {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n := &servedNode{t: t, log: newBook(), cancel: cancel, ended: make(chan struct{})}
	root := newRoot()
	root.SetArgs(append([]string{"serve", "--cache-dir", t.TempDir(), "--listen", "127.0.0.1:0"}, args...))
	root.SetErr(n.log)
	go func() {
		defer close(n.ended)
		n.err = root.ExecuteContext(ctx)
		n.log.end()
	}()
	t.Cleanup(func() { n.stop() })
	if n.addr = n.log.await(`msg=listening addr=(\S+)`); n.addr == "" {
		<-n.ended
		t.Fatalf("%v\n%s", n.err, n.log)
	}
	return n
}

// stop is SIGTERM, and waits.
func (n *servedNode) stop() {
	n.cancel()
	<-n.ended
}

func (n *servedNode) dial(options ...grpc.DialOption) *grpc.ClientConn {
	n.t.Helper()
	c, err := grpc.NewClient(n.addr, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	return c
}

// get is the answer of the node's HTTP port.
func (n *servedNode) get(path string) (code int, body string) {
	n.t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get("http://" + n.log.await(`msg=http addr=(\S+)`) + path)
	if err != nil {
		n.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// digest is that of an epoch.
func digest(t testing.TB, o client.Options, batch int) string {
	t.Helper()
	o.StartTimeout, o.Timeout = 30*time.Second, 30*time.Second
	l, err := loader.New(loader.Options{Options: o, Batch: batch, Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := loader.NewDigest()
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Add(b); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	return fmt.Sprintf("%d %s", d.Samples(), d.Sum())
}

func TestServe(t *testing.T) {
	n := start(t, "--data", "photos="+pictures(t, 1), "--http", "127.0.0.1:0", "--workers", "2")
	if got := digest(t, client.Options{Plan: crops, Nodes: []string{n.addr}}, 5); !strings.HasPrefix(got, "16 ") {
		t.Error(got)
	}
	if code, body := n.get("/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("healthz: %d %q", code, body)
	}
	if code, body := n.get("/"); code != http.StatusOK || !strings.Contains(body, "<title>Feedwater</title>") {
		t.Errorf("/: %d %q", code, body)
	}
	if code, _ := n.get("/none"); code != http.StatusNotFound {
		t.Errorf("/none: %d", code)
	}
	_, metrics := n.get("/metrics")
	for _, w := range []string{
		"feedwater_node_samples_total 16\n", "feedwater_node_batches_total 4\n", "feedwater_node_lent_bytes 0\n", "feedwater_node_streams 0\n",
		"feedwater_node_limit_bytes 4.294967296e+09\n", "feedwater_node_workers 2\n", "feedwater_node_info{build=", "feedwater_node_make_seconds_bucket",
		"go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(metrics, w) {
			t.Errorf("metrics do not say %q", w)
		}
	}
	problems, err := promlint.New(strings.NewReader(metrics)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("names of metrics: %v, %v", problems, err)
	}
	n.stop()
	if n.err != nil || !strings.Contains(n.log.String(), "msg=stopped") {
		t.Errorf("%v\n%s", n.err, n.log)
	}
}

func TestHealthAndReflection(t *testing.T) {
	n := start(t, "--data", "photos="+anyFolder(t))
	c := n.dial()
	for _, service := range []string{"", pb.Feed_ServiceDesc.ServiceName} {
		r, err := healthpb.NewHealthClient(c).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", service, r, err)
		}
	}
	s, err := reflectionpb.NewServerReflectionClient(c).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	r, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.GetListServicesResponse().GetService(), func(s *reflectionpb.ServiceResponse) bool {
		return s.Name == pb.Feed_ServiceDesc.ServiceName
	}) {
		t.Errorf("reflection lists %v", r)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	_, _ = s.Recv() // its end
}

// slow is a connection of some 30 MB/s, which is slower than a node sends.
type slow struct{ net.Conn }

func dialSlow(ctx context.Context, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	return slow{c}, err
}

func (c slow) Read(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return c.Conn.Read(b[:min(len(b), 32<<10)])
}

// A node that is told to stop becomes unhealthy, takes no more, and delivers all that it holds, however slowly it is read.
func TestStopDelivers(t *testing.T) {
	dir := pictures(t, 1)
	for range 3 {
		n := start(t, "--data", "photos="+dir, "--http", "127.0.0.1:0")
		c := n.dial(grpc.WithContextDialer(dialSlow))
		opened, err := pb.NewFeedClient(c).Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: large})
		if err != nil {
			t.Fatal(err)
		}
		s, err := pb.NewFeedClient(c).Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const wants = 3
		requests := []*pb.FetchRequest{{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: opened.Plan}}}}
		for id := range uint64(wants) {
			name := &pb.Name{Samples: &pb.Name_Range{Range: &pb.Range{Position: 4 * id, Count: 4}}}
			requests = append(requests, &pb.FetchRequest{Request: &pb.FetchRequest_Want{Want: &pb.Want{Id: id + 1, Name: name}}})
		}
		for _, r := range requests {
			if err := s.Send(r); err != nil {
				t.Fatal(err)
			}
		}
		m, err := s.Recv()
		n.cancel()
		n.log.await("msg=draining")
		if code, _ := n.get("/healthz"); code != http.StatusServiceUnavailable {
			t.Errorf("healthz while draining: %d", code)
		}
		whole := 0
		for ; err == nil; m, err = s.Recv() {
			if m.Id != 0 && m.Failure == nil && m.Offset+uint64(len(m.Data)) == m.Size {
				whole++
			}
		}
		if whole != wants || !errors.Is(err, io.EOF) {
			t.Errorf("%d of %d batches came, then %v", whole, wants, err)
		}
		if <-n.ended; n.err != nil || strings.Contains(n.log.String(), "timed out") {
			t.Errorf("%v\n%s", n.err, n.log)
		}
	}
}

// stuck is a stream whose trainer takes nothing: a node that drains waits for it.
func stuck(t *testing.T, addr string) {
	t.Helper()
	c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s, err := pb.NewFeedClient(c).Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*pb.FetchRequest{
		{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: large}}},
		{Request: &pb.FetchRequest_Want{Want: &pb.Want{Id: 1, Name: &pb.Name{Samples: &pb.Name_Range{Range: &pb.Range{Count: 16}}}}}},
	} {
		if err := s.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
}

func TestStopGivesUp(t *testing.T) {
	n := start(t, "--data", "photos="+pictures(t, 1), "--drain-timeout", "10ms")
	stuck(t, n.addr)
	if n.stop(); n.err != nil || !strings.Contains(n.log.String(), "drain timed out") {
		t.Errorf("%v\n%s", n.err, n.log)
	}
}

// A node that is told to stop before it has begun ends as any other.
func TestStopAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		o := &serveOptions{data: folders{"a": anyFolder(t)}, listen: "127.0.0.1:0", http: "127.0.0.1:0", logOptions: logOptions{"json", "info"}, memory: 1 << 20, indexes: indexPlace{flags: new(pflag.FlagSet)}}
		if err := o.runNode(ctx, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
}

// signalled is a node in a process of its own, which has a stuck trainer.
func signalled(t *testing.T, listen string) (log *book, kill func(syscall.Signal), wait func() syscall.WaitStatus) {
	t.Helper()
	c := program(t, "serve", "--data", "photos="+pictures(t, 1), "--listen", listen, "--cache-dir", t.TempDir(), "--drain-timeout", "10m")
	log = newBook()
	c.Stderr = log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		log.end()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	addr := log.await(`msg=listening addr=(\S+)`)
	if addr == "" {
		t.Fatal(log)
	}
	stuck(t, addr)
	return log, func(s syscall.Signal) { _ = c.Process.Signal(s) }, func() syscall.WaitStatus {
		<-ended
		return c.ProcessState.Sys().(syscall.WaitStatus)
	}
}

// The first Ctrl-C drains; the second one ends the node, whatever it waits for.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	log, kill, wait := signalled(t, "127.0.0.1:0")
	kill(syscall.SIGINT)
	log.await("msg=draining")
	kill(syscall.SIGINT)
	if status := wait(); status.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v (code %d, signal %v)\n%s", status, status.ExitStatus(), status.Signal(), log)
	}
}

// SIGTERM that comes again, as from an engine that tells a script and what it runs, ends no drain; Ctrl-C does.
func TestSecondTermIsTheSame(t *testing.T) {
	log, kill, wait := signalled(t, "127.0.0.1:0")
	kill(syscall.SIGTERM)
	log.await("msg=draining")
	kill(syscall.SIGTERM)
	kill(syscall.SIGINT)
	if status := wait(); status.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v (code %d, signal %v)\n%s", status, status.ExitStatus(), status.Signal(), log)
	}
}

// A hangup, a word to read files again for other servers, ends nothing; SIGTERM does, in order.
func TestSignalDrains(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("team-a aaaa0000111122223333\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := program(t, "serve", "--data", "photos="+anyFolder(t), "--listen", "127.0.0.1:0", "--token-file", tokens)
	log := newBook()
	c.Stderr = log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- c.Wait()
		log.end()
	}()
	log.await("msg=listening")
	if err := os.WriteFile(tokens, []byte("team-b bbbb0000111122223333\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		signal syscall.Signal
		says   string
	}{{syscall.SIGHUP, "SIGHUP: (cert)"}, {0, `msg="read (again)"`}, {syscall.SIGTERM, "msg=(draining)"}} {
		if err := c.Process.Signal(step.signal); err != nil || log.await(step.says) == "" {
			t.Errorf("%v: %v\n%s", step.signal, err, log)
		}
	}
	if err := <-ended; err != nil || !strings.Contains(log.String(), "msg=stopped") {
		t.Errorf("%v\n%s", err, log)
	}
}

// A node that was killed leaves its socket behind; the next one takes its place, but never that of a node that lives.
func TestUnixSocket(t *testing.T) {
	t.Chdir(t.TempDir()) // the path of a socket has to be short
	const addr = "unix:socket"
	_, kill, wait := signalled(t, addr)
	code, _, errs := call("serve", "--data", "a="+anyFolder(t), "--listen", addr)
	if code != exitError || !strings.Contains(errs, "address already in use") {
		t.Errorf("beside a node that lives: exit code %d, %s", code, errs)
	}
	kill(syscall.SIGKILL)
	wait()
	n := start(t, "--data", "photos="+pictures(t, 1), "--listen", addr)
	if n.addr != addr {
		t.Errorf("listens on %q", n.addr)
	}
	if got := digest(t, client.Options{Plan: crops, Nodes: []string{addr}}, 4); !strings.HasPrefix(got, "16 ") {
		t.Error(got)
	}
	n.stop()
	if _, err := os.Lstat("socket"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call("serve", "--data", "a="+anyFolder(t), "--listen", "unix:file"); code != exitError {
		t.Errorf("a file in its place: exit code %d, %s", code, errs)
	}
	if _, err := os.Lstat("file"); err != nil {
		t.Error("a file was taken for a socket and removed")
	}
}

func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := serveOptions{data: folders{"a": dir}, listen: "127.0.0.1:0", logOptions: logOptions{"text", "info"}, memory: leastMemory}
	if err := good.checkFlags(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*serveOptions)
		says   string
	}{
		"nothing":         {func(o *serveOptions) { o.data = nil }, "give --data NAME=FOLDER"},
		"no folder":       {func(o *serveOptions) { o.data = folders{"a": dir + "/none"} }, "--data a: stat "},
		"a file":          {func(o *serveOptions) { o.data = folders{"a": dir, "b": file} }, "--data b: " + file + " is no folder"},
		"log format":      {func(o *serveOptions) { o.format = "xml" }, `"xml" is neither text nor json`},
		"negative":        {func(o *serveOptions) { o.workers = -1 }, "--workers -1"},
		"very many":       {func(o *serveOptions) { o.workers = 1_000_000 }, "--workers 1000000"},
		"no memory":       {func(o *serveOptions) { o.memory = 0 }, "--max-memory 0: no batch fits; give 1MiB at least"},
		"kept too much":   {func(o *serveOptions) { o.keep = 1 << 60 }, "GiB of memory, for all that runs here"},
		"hardly memory":   {func(o *serveOptions) { o.memory = leastMemory - 1 }, "give 1MiB at least"},
		"drain":           {func(o *serveOptions) { o.drain = -time.Second }, "--drain-timeout -1s"},
		"no port":         {func(o *serveOptions) { o.listen = "localhost" }, "missing port in address; write host:port"},
		"high port":       {func(o *serveOptions) { o.listen = "127.0.0.1:70000" }, "invalid port; write host:port"},
		"no path":         {func(o *serveOptions) { o.listen = "unix:" }, "unix:/path"},
		"all networks":    {func(o *serveOptions) { o.listen = ":7070" }, "--insecure"},
		"another network": {func(o *serveOptions) { o.listen = "10.0.0.5:7070" }, "--insecure"},
		"http":            {func(o *serveOptions) { o.http = "7071" }, "--http 7071: "},
	} {
		o := good
		c.change(&o)
		err := o.checkFlags()
		if err == nil {
			err = o.data.checkExist(slog.New(slog.DiscardHandler))
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		var usage usageError
		if err := o.runNode(t.Context(), io.Discard, io.Discard); !errors.As(err, &usage) {
			t.Errorf("%s: %v is no usage error", name, err)
		}
	}
	open := good
	open.listen, open.insecure = ":7070", true
	if err := open.checkFlags(); err != nil {
		t.Errorf("with --insecure: %v", err)
	}
}

func TestMemoryLimit(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	limit := limitMemory(1 << 30)
	if got := debug.SetMemoryLimit(-1); got != 1<<30+besideSlots {
		t.Errorf("the limit is %d", got)
	}
	limit.restoreLimit()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("the limit is %d afterwards, was %d", got, before)
	}
	t.Setenv("GOMEMLIMIT", "2GiB")
	limitMemory(1 << 30).restoreLimit()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("the limit is %d though the environment says another", got)
	}
}

// Indexes of data sets take memory for as long as they are open, little where there are few records, and while something is gathered.
func TestMemoryLimitCountsIndexes(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	limit := limitMemory(1 << 30)
	defer limit.restoreLimit()
	const gathered, samples = 8 << 20, 1_200_000
	place := indexPlace{dir: t.TempDir()}
	index := place.openIndex("", slog.New(slog.DiscardHandler), limit.addHeld, nil)
	for _, name := range []string{"a", "b"} {
		store, err := imageindex.Open(name, samples, imageindex.Options{Dir: index.Dir, Hold: index.Hold})
		if err != nil {
			t.Fatal(err)
		}
		store.Put(0, imageindex.Digest([]byte("file")), []byte("record"))
		places := debug.SetMemoryLimit(-1) - (1<<30 + besideSlots + gathered)
		if places < samples/64 || places > samples/16 {
			t.Errorf("the limit counts %d bytes for places of an index with a record", places)
		}
		store.Close()
		store.Close()
		if got := debug.SetMemoryLimit(-1); got != 1<<30+besideSlots {
			t.Errorf("the limit is %d when it is closed", got)
		}
	}
}

func TestIsLocalAddress(t *testing.T) {
	for addr, local := range map[string]bool{
		"127.0.0.1:7070": true, "127.8.9.1:1": true, "[::1]:7070": true, "localhost:7070": true, "unix:/run/x": true,
		":7070": false, "0.0.0.0:7070": false, "[::]:7070": false, "10.0.0.5:7070": false, "cpu-1:7070": false, "localhost": false, "": false,
	} {
		if isLocalAddress(addr) != local {
			t.Errorf("%q: local is %v", addr, !local)
		}
	}
}

// Scans of two folders at once tell how far they are by one function. (For the race detector.)
func TestScanProgressOfManyScans(t *testing.T) {
	log := newBook()
	progress := scanProgress(slog.New(slog.NewTextHandler(log, nil)))
	var scans sync.WaitGroup
	for range 4 {
		scans.Go(func() {
			for i := range 1000 {
				progress(i)
			}
		})
	}
	scans.Wait()
	if s := log.String(); s != "" {
		t.Errorf("a short scan is told of: %s", s)
	}
}

func TestHTTPPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	code, _, errs := call("serve", "--data", "a="+anyFolder(t), "--listen", "127.0.0.1:0", "--http", l.Addr().String())
	if code != exitError || !strings.Contains(errs, "--http "+l.Addr().String()) {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
