package server_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// Stop delivers what is on its way to a trainer that reads slowly.
func TestStopDelivers(t *testing.T) {
	n := newNode(t, &servertest.Engine{Height: 200, Width: 200}, server.Options{})
	tr := n.started()
	for id := range uint64(4) {
		tr.want(id+1, rangeOf(0, id, 20))
	}
	bytes := len(tr.piece().Data)
	until(t, "batches are not made", func() bool { return n.engine.Made() == 4 })
	stopped := make(chan error)
	go func() { stopped <- n.Stop(t.Context(), n.grpc) }()
	for {
		m, err := tr.stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(m.Data)
	}
	if want := 4 * (20*200*200*3 + 2*192); bytes != want {
		t.Errorf("%d bytes came, want %d", bytes, want)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStopBreaksOff(t *testing.T) {
	n := newNode(t, &servertest.Engine{Delay: hang}, server.Options{})
	tr := n.started()
	tr.want(1, rangeOf(9, 0, 8))
	tr.want(2, rangeOf(0, 0, 8))
	tr.mustNext()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := n.Stop(ctx, n.grpc); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	n.settled()
}

// Calls of other services that have no end do not keep a node from stopping once its trainers have all they wait for.
func TestStopDoesNotWaitForWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Delay: func(*batch.Name) time.Duration { return 10 * time.Second }}
		n := newNode(t, e, server.Options{})
		n.grpc.Stop() // to serve one more service
		<-n.served
		n.grpc, n.listener = grpc.NewServer(n.GRPCOptions()...), bufconn.Listen(1<<20)
		n.Register(n.grpc)
		healthpb.RegisterHealthServer(n.grpc, health.NewServer())
		go func() { n.served <- n.grpc.Serve(n.listener) }()
		c := n.conn()
		watch, err := healthpb.NewHealthClient(c).Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
		tr := n.started()
		tr.want(1, rangeOf(0, 0, 8))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		stopped := make(chan error)
		go func() { stopped <- n.Stop(ctx, n.grpc) }()
		if a := tr.mustNext(); a.failure != nil {
			t.Error(a.failure)
		}
		if err := <-stopped; err != nil || time.Since(began) > 20*time.Second {
			t.Errorf("stopped after %s: %v", time.Since(began), err)
		}
		if _, err := watch.Recv(); err == nil {
			t.Error("the watcher was not told")
		}
	})
}

func TestTenTrainersScanOnce(t *testing.T) {
	var scans atomic.Int64
	begun, proceed := make(chan struct{}, 100), make(chan struct{})
	e := &servertest.Engine{Scanning: func(ctx context.Context, _ string) error {
		scans.Add(1)
		begun <- struct{}{}
		select {
		case <-proceed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	n := newNode(t, e, server.Options{})
	gone, leave := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := pb.NewFeedClient(n.conn()).Open(gone, &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan})
		first <- err
	}()
	<-begun
	var wg sync.WaitGroup
	pinned := make(chan string, 10)
	for range 10 {
		c := n.conn()
		wg.Go(func() {
			r, err := pb.NewFeedClient(c).Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan})
			if err != nil {
				t.Error(err)
			}
			pinned <- r.GetPlan()
		})
	}
	until(t, "trainers do not wait for the scan", func() bool { return n.Waiting() == 11 })
	leave() // whoever began the scan goes away
	if err := <-first; err == nil {
		t.Error("no error for the one that left")
	}
	until(t, "the one that left is still waited for", func() bool { return n.Waiting() == 10 })
	close(proceed)
	wg.Wait()
	tr := n.fetch(n.conn())
	tr.start(<-pinned)
	tr.want(1, rangeOf(0, 0, 8))
	tr.mustNext()
	tr.cancel()
	if k := scans.Load(); k != 1 {
		t.Errorf("%d scans", k)
	}
}

// The server of this process makes batches without a wire.
func TestJob(t *testing.T) {
	e := &servertest.Engine{Delay: hang}
	root := t.TempDir()
	n := newNode(t, e, server.Options{AnyPath: true})
	r, err := n.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: `{"source": {"path": "` + root + `"}}`})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: `{"source": {"path": "relative"}}`}); err == nil {
		t.Error("a relative path is taken")
	}
	j, err := n.Job(t.Context(), &pb.Start{Plan: r.Plan})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	made := make(chan server.Made, 1)
	submit := func(w *server.Want) server.Made {
		w.Done = func(m server.Made) { made <- m }
		j.Submit(w)
		return <-made
	}
	if m := submit(&server.Want{Name: rangeOf(0, 0, 8), Request: batch.Request{Dst: make([]byte, 1000)}}); m.Failure != nil || len(m.Data) != 8*48+2*64 || m.Header.Crc32C != 0 {
		t.Errorf("got %d bytes, %v", len(m.Data), m.Failure)
	}
	var room *pipeline.RoomError
	if m := submit(&server.Want{Name: rangeOf(0, 0, 8), Request: batch.Request{Dst: make([]byte, 10)}}); !errors.As(m.Err, &room) || room.Bytes != 8*48+2*64 || m.Failure == nil {
		t.Errorf("too little room: %v", m.Err)
	}
	grown := make([]byte, 1000)
	if m := submit(&server.Want{Name: rangeOf(0, 0, 8), Request: batch.Request{Grow: func(int) []byte { return grown }}}); m.Err != nil || &m.Data[0] != &grown[0] {
		t.Errorf("grown: %v", m.Err)
	}
	if m := submit(&server.Want{Name: rangeOf(0, 0, 0)}); m.Failure.GetReason() != pb.Reason_REASON_NAME {
		t.Errorf("no samples: %v", m.Failure)
	}
	w := &server.Want{Name: rangeOf(9, 0, 8), Request: batch.Request{Dst: make([]byte, 1000)}, Done: func(m server.Made) { made <- m }}
	j.Submit(w)
	j.Cancel(w)
	if m := <-made; !errors.Is(m.Err, pipeline.ErrCancelled) || codes.Code(m.Failure.Code) != codes.Canceled {
		t.Errorf("cancelled: %v", m.Err)
	}
	if _, err := n.Job(t.Context(), &pb.Start{Plan: r.Plan, Numerics: "others"}); err == nil {
		t.Error("other numerics are taken")
	}
}

func TestReplay(t *testing.T) {
	n := newNode(t, &servertest.Engine{Height: 100, Width: 100}, server.Options{ReplaySamples: 50, ReplayBytes: 40 * 30_000})
	text := n.open(plan).Plan
	feed := pb.NewFeedClient(n.conn())
	replay := func(name *pb.Name, pixels bool) (*pb.ReplayResponse, error) {
		return feed.Replay(t.Context(), &pb.ReplayRequest{Plan: text, Name: name, Pixels: pixels})
	}
	r, err := replay(rangeOf(0, 985, 40), true)
	if err != nil || len(r.Samples) != 40 {
		t.Fatalf("%d samples, %v", len(r.GetSamples()), err)
	}
	for i, s := range r.Samples {
		if s.Index != uint64(985+i)%1000 || s.Repeat != uint32(985+i)/1000 || len(s.Image) != 30_000 || s.Height != 100 {
			t.Fatalf("sample %d is %d, repeat %d, of %d bytes", i, s.Index, s.Repeat, len(s.Image))
		}
	}
	list := &pb.Name{Samples: &pb.Name_List{List: &pb.List{}}}
	for i := range uint64(20) {
		list.GetList().Indices = append(list.GetList().Indices, 7*i)
		list.GetList().Repeats = append(list.GetList().Repeats, 0)
	}
	if r, err := replay(list, false); err != nil || len(r.Samples) != 20 || r.Samples[19].Index != 133 || len(r.Samples[0].Image) != 0 {
		t.Errorf("%d samples, %v", len(r.GetSamples()), err)
	}
	for name, c := range map[string]struct {
		name   *pb.Name
		reason pb.Reason
	}{
		"bytes":   {rangeOf(0, 0, 50), pb.Reason_REASON_TOO_LARGE},
		"samples": {rangeOf(0, 0, 51), pb.Reason_REASON_NAME},
		"none":    {nil, pb.Reason_REASON_NAME},
	} {
		if _, err := replay(c.name, true); err == nil {
			t.Errorf("%s: no error", name)
		} else if _, reason := reasonOf(err); reason != c.reason.String() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A replay is refused where the job pins other versions of the store that the node reads, and no others.
func TestReplayOfOtherVersions(t *testing.T) {
	n := newNode(t, &servertest.Engine{Store: "s", Versions: "y"}, server.Options{})
	text := n.open(plan).Plan
	for name, c := range map[string]struct {
		stores map[string]string
		fails  bool
	}{
		"none": {nil, false}, "its own": {map[string]string{"s": "y", "r": "x"}, false}, "of others": {map[string]string{"r": "x"}, false},
		"other versions": {map[string]string{"s": "x"}, true},
	} {
		_, err := n.Replay(t.Context(), &pb.ReplayRequest{Plan: text, Name: rangeOf(0, 0, 1), Stores: c.stores})
		if _, reason := reasonOf(err); (err != nil) != c.fails || c.fails && reason != pb.Reason_REASON_DATA_DIFFERS.String() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A sample that takes more than an answer may is not made; one that takes all of it is, alone.
func TestReplayOfOneSample(t *testing.T) {
	const size = 30_000
	for most, samples := range map[int]uint32{size - 1: 0, size: 1, 2*size - 1: 1, 2 * size: 2} {
		n := newNode(t, &servertest.Engine{Height: 100, Width: 100}, server.Options{ReplayBytes: most})
		r := &pb.ReplayRequest{Plan: n.open(plan).Plan, Name: rangeOf(0, 0, max(1, samples)), Pixels: true}
		if samples > 0 {
			if _, err := n.Replay(t.Context(), r); err != nil {
				t.Errorf("%d samples in %d bytes: %v", samples, most, err)
			}
			r.Name = rangeOf(0, 0, samples+1)
		}
		if _, err := n.Replay(t.Context(), r); err == nil {
			t.Errorf("more than %d samples in %d bytes", samples, most)
		} else if _, reason := reasonOf(err); reason != pb.Reason_REASON_TOO_LARGE.String() {
			t.Errorf("more than %d samples in %d bytes: %v", samples, most, err)
		}
	}
}

// Replays wait for one another, and give up waiting when their callers do or the node goes.
func TestReplaysTakeTurns(t *testing.T) {
	entered, proceed := make(chan struct{}), make(chan struct{})
	e := &servertest.Engine{Scanning: func(context.Context, string) error {
		entered <- struct{}{}
		<-proceed
		return nil
	}}
	n := newNode(t, e, server.Options{Replays: 2})
	replay := func(ctx context.Context, path string) <-chan error {
		done := make(chan error, 1)
		text := `{"source": {"root": "photos", "path": "` + path + `"}}`
		go func() {
			_, err := n.Replay(ctx, &pb.ReplayRequest{Plan: text, Name: rangeOf(0, 0, 1)})
			done <- err
		}()
		return done
	}
	first := []<-chan error{replay(t.Context(), ""), replay(t.Context(), ".")}
	<-entered // one scan for both
	until(t, "two do not run at once", func() bool { return n.Waiting() == 2 })
	ctx, cancel := context.WithCancel(t.Context())
	third, fourth := replay(ctx, ""), replay(t.Context(), "")
	cancel()
	if code, reason := reasonOf(<-third); code != codes.Canceled || reason != pb.Reason_REASON_CANCELLED.String() {
		t.Errorf("the one whose caller left: %v, %s", code, reason)
	}
	if k := n.Waiting(); k != 2 {
		t.Errorf("%d run at once", k)
	}
	go func() { _ = n.Drain(t.Context()) }()
	if _, reason := reasonOf(<-fourth); reason != pb.Reason_REASON_DRAINING.String() {
		t.Errorf("the one that waited when the node went: %s", reason)
	}
	close(proceed)
	for _, done := range first {
		if err := <-done; err != nil {
			t.Errorf("what had begun when the node went: %v", err)
		}
	}
}

func TestMetrics(t *testing.T) {
	e := &servertest.Engine{Fail: func(n *batch.Name) error {
		if n.Epoch == 1 {
			return &pipeline.SampleError{Key: "a", Op: "decode", Cause: errors.New("damaged")}
		}
		return nil
	}}
	n := newNode(t, e, server.Options{NodeBytes: 1 << 20, Version: "v1"})
	tr := n.started()
	for id := range uint64(3) {
		tr.want(id+1, rangeOf(uint32(id%2), 0, 8))
		tr.mustNext()
		n.settled() // else the next batch has a slot of its own
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(n)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += "," + l.GetName() + "=" + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
		if ours := strings.HasPrefix(f.GetName(), "feedwater_node_") || strings.HasPrefix(f.GetName(), "feedwater_job"); !ours || f.GetHelp() == "" {
			t.Errorf("%s: %s", f.GetName(), f.GetHelp())
		}
	}
	for name, want := range map[string]float64{
		"feedwater_node_batches_total": 2, "feedwater_node_samples_total": 16, "feedwater_node_sent_bytes_total": 1024,
		"feedwater_node_failures_total,code=DataLoss": 1, "feedwater_node_sample_errors_total,outcome=raised": 1,
		"feedwater_node_make_seconds": 2, "feedwater_node_send_seconds": 2, "feedwater_node_scan_seconds": 1, "feedwater_node_late_batches_total": 0,
		"feedwater_node_streams": 1, "feedwater_node_slot_bytes": 4096, "feedwater_node_lent_bytes": 0, "feedwater_node_limit_bytes": 1 << 20,
		"feedwater_node_workers": 2, "feedwater_node_snapshots": 1, "feedwater_node_draining": 0, "feedwater_node_queued_core_seconds": 0,
		"feedwater_node_info,build=v1,kernels=none,numerics=numerics,version=v1": 1, "feedwater_node_stalled_streams_total": 0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	if v := got["feedwater_node_make_core_seconds_total"]; v <= 0 {
		t.Errorf("core-seconds %v", v)
	}
}

// Two paths to one folder share its snapshot.
func TestPathsToOneFolderShareItsSnapshot(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, &servertest.Engine{}, server.Options{Roots: map[string]string{"one": root, "two": filepath.Join(root, "a")}})
	for _, source := range []string{`"root": "one", "path": "a"`, `"root": "one", "path": "link"`, `"root": "two"`} {
		n.open(`{"source": {` + source + `}}`)
	}
	if k := n.engine.Open(); k != 1 {
		t.Errorf("%d snapshots", k)
	}
}
