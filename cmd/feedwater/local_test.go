package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/agent"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/local"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// pipelines are those of an agent, closed at the end of the test.
func pipelines(t *testing.T) *localPipelines {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	l := newLocalPipelines(slog.New(slog.DiscardHandler), newCores(), local.Options{})
	t.Cleanup(l.Close)
	return l
}

// at is a plan for a folder of this machine.
func at(plan, folder string) string {
	path, _ := json.Marshal(folder)
	return strings.Replace(plan, `{"root": "photos"}`, `{"path": `+string(path)+`}`, 1)
}

// ownNode is a node of this process.
func ownNode(t *testing.T, l *localPipelines, workers int) node.Node {
	t.Helper()
	n, err := l.newNode(workers, "")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func openFleet(t *testing.T, o client.Options) *client.Fleet {
	t.Helper()
	o.StartTimeout, o.Timeout = 20*time.Second, 20*time.Second
	f, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if _, err := f.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

func rangeOf(position uint64, count uint32) *pb.Name {
	return &pb.Name{Samples: &pb.Name_Range{Range: &pb.Range{Position: position, Count: count}}}
}

// The pipeline of this process makes the same batches as a node, with any number of workers.
func TestLocalIsJustAnotherNode(t *testing.T) {
	dir := pictures(t, 1)
	n := start(t, "--data", "photos="+dir)
	l := pipelines(t)
	for _, plan := range []string{crops, whole} {
		want := digest(t, client.Options{Plan: plan, Nodes: []string{n.addr}}, 5)
		for _, workers := range []int{1, 3} {
			if got := digest(t, client.Options{Plan: at(plan, dir), Local: ownNode(t, l, workers)}, 7); got != want {
				t.Errorf("%d workers: %s, the node: %s", workers, got, want)
			}
		}
	}
}

func TestLocalReplay(t *testing.T) {
	f := openFleet(t, client.Options{Plan: at(crops, pictures(t, 1)), Local: ownNode(t, pipelines(t), 1)})
	r, err := f.Replay(t.Context(), &pb.ReplayRequest{Name: rangeOf(0, 3), Pixels: true})
	if err != nil || len(r.Samples) != 3 || len(r.Samples[2].Image) != 64*64*3 {
		t.Errorf("%v, %v", r, err)
	}
}

// Images are handed over as they are made, once each.
func TestLocalImages(t *testing.T) {
	f := openFleet(t, client.Options{Plan: at(crops, pictures(t, 1)), Local: ownNode(t, pipelines(t), 2)})
	var images [16]atomic.Int64
	result := make(chan client.Result, 1)
	f.Want(&client.Want{
		Name: rangeOf(0, 16), Request: batch.Request{Dst: make([]byte, 1<<20), Image: func(_, i int, pix []byte) { images[i].Add(int64(len(pix))) }},
		Done: func(r client.Result) { result <- r },
	})
	if r := <-result; r.Err != nil || !r.Imaged || r.Node != node.Local {
		t.Errorf("%+v", r)
	}
	for i := range images {
		if n := images[i].Load(); n != 64*64*3 {
			t.Errorf("%d bytes of image %d", n, i)
		}
	}
}

// A batch of samples that differ in size says what room it needs, at once, as one that comes over the wire does.
func TestLocalBatchThatNeedsMoreRoom(t *testing.T) {
	dir := pictures(t, 1)
	n := start(t, "--data", "photos="+dir)
	for what, o := range map[string]client.Options{
		"local":  {Plan: at(whole, dir), Local: ownNode(t, pipelines(t), 2)},
		"a node": {Plan: whole, Nodes: []string{n.addr}},
	} {
		f := openFleet(t, o)
		ask := func(bytes int) client.Result {
			result := make(chan client.Result, 1)
			f.Want(&client.Want{Name: rangeOf(0, 16), Request: batch.Request{Dst: make([]byte, bytes)}, Done: func(r client.Result) { result <- r }})
			return <-result
		}
		var room *node.RoomError
		if r := ask(1000); !errors.As(r.Err, &room) || room.Bytes < 16*40*35*3 {
			t.Errorf("%s: %v", what, r.Err)
			continue
		}
		if r := ask(int(room.Bytes)); r.Err != nil || len(r.Data) != int(room.Bytes) {
			t.Errorf("%s: with the room it asked for: %v", what, r.Err)
		}
	}
}

// Wants that are cancelled, and those that a fleet holds when it closes, have one answer each, and nobody writes their memory
// afterwards.
func TestLocalCancelAndClose(t *testing.T) {
	dir := pictures(t, 1)
	l := pipelines(t)
	for round := range 100 {
		f := openFleet(t, client.Options{Plan: at(crops, dir), Local: ownNode(t, l, 2)})
		var answers [12]atomic.Int64
		var wants [12]client.Want
		for i := range wants {
			w := &wants[i]
			w.Name, w.Dst = rangeOf(uint64(i), 4), make([]byte, 1<<16)
			w.Done = func(r client.Result) {
				if r.Err != nil && !errors.Is(r.Err, node.ErrCancelled) && !errors.Is(r.Err, client.ErrClosed) {
					t.Error(r.Err)
				}
				for j := range w.Dst {
					w.Dst[j] = 0xa5
				}
				answers[i].Add(1)
			}
			f.Want(w)
		}
		for i := range wants {
			for range (i + round) % 7 {
				runtime.Gosched()
			}
			if (i+round)%3 > 0 {
				f.Cancel(&wants[i])
			}
		}
		f.Close()
		for i := range wants {
			if n := answers[i].Load(); n != 1 {
				t.Fatalf("round %d: want %d had %d answers", round, i, n)
			}
			for j, b := range wants[i].Dst {
				if b != 0xa5 {
					t.Fatalf("round %d: byte %d of want %d was written after its answer", round, j, i)
				}
			}
		}
	}
}

// copied is a copy of a folder in another place.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// connect makes the fleet of a Loader with nodes and opens it.
func connect(t *testing.T, l *localPipelines, p agent.Plan) (*pb.OpenResponse, error) {
	t.Helper()
	p.StartTimeout, p.Timeout, p.Log = 20*time.Second, 20*time.Second, slog.New(slog.DiscardHandler)
	f, err := newConnector(l)(t.Context(), p)
	if err != nil {
		return nil, err
	}
	t.Cleanup(f.Close)
	return f.Open(t.Context())
}

// A folder of the trainer's machine stands for whatever folder of the nodes holds the same pictures.
func TestLocalFolderIsFoundOnNodes(t *testing.T) {
	dir := pictures(t, 1)
	n := start(t, "--data", "other="+pictures(t, 2), "--data", "photos="+dir)
	l := pipelines(t)
	here := copied(t, dir)
	plan := agent.Plan{Text: []byte(at(crops, here)), Nodes: []string{n.addr}, Local: here}
	r, err := connect(t, l, plan)
	if err != nil {
		t.Fatal(err)
	}
	want, err := pb.NewFeedClient(n.dial()).Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: crops})
	if err != nil || r.PlanHash != want.PlanHash || strings.Contains(r.Plan, here) {
		t.Errorf("%v: opened %s, want %s", err, r.Plan, want.GetPlan())
	}
	if err := os.Remove(filepath.Join(here, "class1", "01.jpg")); err != nil {
		t.Fatal(err)
	}
	var data *node.DataError
	if _, err := connect(t, l, plan); !errors.As(err, &data) || !strings.Contains(err.Error(), "other, photos") {
		t.Errorf("other data: %v", err)
	}
	plan.Local = here + "/none"
	if _, err := connect(t, l, plan); !errors.As(err, &data) || data.Path != plan.Local {
		t.Errorf("no data: %v", err)
	}
}

// Cores of the trainer's machine are one more node: the same batches, some of them made here, and all of them when the node is gone.
func TestLocalBesideNodes(t *testing.T) {
	dir := pictures(t, 1)
	here := copied(t, dir)
	for _, plan := range []string{crops, whole} {
		n := start(t, "--data", "photos="+dir)
		want := digest(t, client.Options{Plan: plan, Nodes: []string{n.addr}}, 1)
		o, err := pipelines(t).fleetOptions(t.Context(), agent.Plan{
			Text: []byte(at(plan, here)), Nodes: []string{n.addr}, Local: here, Workers: 1,
			StartTimeout: 20 * time.Second, Timeout: 20 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		l, err := loader.New(loader.Options{Options: o, Batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		info, err := l.Open(t.Context())
		if err != nil || strings.Contains(info.Plan, here) {
			t.Fatalf("%v: %s", err, info.GetPlan())
		}
		for len(readyNodes(l.Fleet())) < 2 {
			time.Sleep(time.Millisecond) // nobody tells
		}
		for _, gone := range []bool{false, true} {
			got, made := loader.NewDigest(), map[string]int{}
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if err := got.Add(b); err != nil {
					t.Fatal(err)
				}
				made[b.Node]++
				b.Release()
			}
			if s := fmt.Sprintf("%d %s", got.Samples(), got.Sum()); !gone && s != want || got.Samples() != 16 {
				t.Errorf("beside a node: %s, the node alone: %s", s, want)
			}
			if made[node.Local] == 0 || !gone && made[n.addr] == 0 {
				t.Errorf("batches were made at %v", made)
			}
			if r, err := l.Fleet().Replay(t.Context(), &pb.ReplayRequest{Name: rangeOf(3, 1)}); err != nil || len(r.Samples) != 1 {
				t.Errorf("%v, %v", r, err)
			}
			if !gone {
				n.cancel()
				<-n.ended
			}
		}
	}
}

func readyNodes(f *client.Fleet) (all []string) {
	for _, s := range f.Status() {
		if s.State == client.Ready {
			all = append(all, s.Addr)
		}
	}
	return all
}

func TestConnectorWithoutNodes(t *testing.T) {
	dir := pictures(t, 1)
	l := pipelines(t)
	if r, err := connect(t, l, agent.Plan{Text: []byte(at(crops, dir)), Workers: 1}); err != nil || r.Samples != 16 || r.Workers != 1 {
		t.Errorf("%v, %v", r, err)
	}
	var data *node.DataError
	for _, folder := range []string{dir + "/none", t.TempDir()} {
		if _, err := connect(t, l, agent.Plan{Text: []byte(at(crops, folder)), Workers: 1}); !errors.As(err, &data) || !strings.Contains(err.Error(), folder) {
			t.Errorf("%s: %v", folder, err)
		}
	}
	var address *node.AddressError
	if _, err := connect(t, l, agent.Plan{Text: []byte(crops), Nodes: []string{"10.0.0.1:7070"}}); !errors.As(err, &address) {
		t.Errorf("another machine: %v", err)
	}
}

func TestShareOfCores(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	for ranks, want := range map[string]int{"": cores, "1": cores, "0": cores, "-1": cores, "x": cores, fmt.Sprint(cores): 1, "1000000": 1} {
		t.Setenv("LOCAL_WORLD_SIZE", ranks)
		if got := shareOfCores(runtime.GOMAXPROCS(0)); got != want {
			t.Errorf("%q ranks: %d of %d cores, want %d", ranks, got, cores, want)
		}
	}
}

// A stream that is closed takes no attempts; one that comes meanwhile is answered.
func TestLocalStreamAfterClose(t *testing.T) {
	n := ownNode(t, pipelines(t), 1)
	opened, err := n.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: at(crops, pictures(t, 1))})
	if err != nil {
		t.Fatal(err)
	}
	s, err := n.Fetch(context.Background(), &pb.Start{Plan: opened.Plan, Numerics: opened.Numerics}, func(*pb.Notice) {})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	answers := make(chan node.Answer, 1)
	a := &node.Attempt{Name: rangeOf(0, 1), Request: batch.Request{Dst: make([]byte, 1<<16)}, Done: func(a node.Answer) { answers <- a }}
	s.Send(a)
	s.Cancel(a)
	if r := <-answers; !errors.Is(r.Err, client.ErrClosed) {
		t.Errorf("%+v", r)
	}
	if _, err := n.Fetch(context.Background(), &pb.Start{Plan: opened.Plan, Numerics: "others"}, nil); err == nil {
		t.Error("other numerics are taken")
	}
}
