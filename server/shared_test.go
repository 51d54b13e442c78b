package server_test

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// sharing is a node that shares batches, and one that does not.
func sharing(t *testing.T, e *servertest.Engine, bytes int64) (n, alone *node) {
	t.Helper()
	return newNode(t, e, server.Options{ShareBytes: bytes}), newNode(t, &servertest.Engine{}, server.Options{})
}

// due asks for a batch that is needed in so much time.
func (tr *trainer) due(id uint64, n *pb.Name, in time.Duration) {
	tr.t.Helper()
	tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Want{Want: &pb.Want{Id: id, Name: n, Due: durationpb.New(in)}}})
}

// Ten jobs that want the same cost what one does, whether they ask together or one after the other, and get what an
// unshared node gives.
func TestEqualJobsCostAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, batches = 10, 20
		e := &servertest.Engine{Cores: 2, SampleTime: 10 * time.Millisecond}
		n, alone := sharing(t, e, 64<<20)
		reference := alone.started()
		ranks := make([]*trainer, jobs)
		for i := range ranks {
			ranks[i] = n.started()
		}
		for id := uint64(1); id <= batches; id++ {
			name := rangeOf(0, 8*id, 8)
			reference.want(id, name)
			want := reference.mustNext().data
			together := ranks
			if id%2 == 0 { // half of them come when it was made
				together = ranks[:jobs/2]
			}
			for _, r := range together {
				r.want(id, name)
			}
			for i, r := range ranks {
				if i >= len(together) {
					r.want(id, name)
				}
				a := r.mustNext()
				if a.id != id || !bytes.Equal(a.data, want) {
					t.Fatalf("job %d, batch %d: an answer to %d, other bytes, or %v", i, id, a.id, a.failure)
				}
			}
		}
		if made := e.Made(); made*10 > batches*13 {
			t.Errorf("%d batches were made where one job needs %d", made, batches)
		}
		if shared := n.counted("shared_batches_total"); shared != (jobs-1)*batches {
			t.Errorf("%d were counted as shared, not %d", shared, (jobs-1)*batches)
		}
		other := n.fetch(n.conn())
		other.start(n.open(`{"source": {"root": "photos"}, "seed": 1}`).Plan)
		before := e.Made()
		other.want(1, rangeOf(0, 8, 8))
		if a := other.mustNext(); a.failure != nil || e.Made() != before+1 {
			t.Errorf("another plan's batch was not made: %v", a.failure)
		}
	})
}

// What is kept is found by jobs that open the data much later, as long as they are the same.
func TestLateJobsFindWhatIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{}
		n, _ := sharing(t, e, 1<<20)
		for range 3 {
			tr := n.started()
			tr.want(1, rangeOf(0, 0, 8))
			if a := tr.mustNext(); a.failure != nil {
				t.Fatal(a.failure)
			}
			time.Sleep(30 * time.Second)
		}
		if made := e.Made(); made != 1 {
			t.Errorf("made %d times, not once", made)
		}
	})
}

// What was made is kept within the limit: the latest is there, the first is made again.
func TestSharedBatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{}
		n, _ := sharing(t, e, 4<<10)
		tr := n.started()
		for id := uint64(1); id <= 20; id++ { // 512 bytes each
			tr.want(id, rangeOf(0, 8*id, 8))
			tr.mustNext()
		}
		for i, c := range []struct {
			place uint64
			more  int
		}{{20, 0}, {1, 1}, {1, 0}} {
			before := e.Made()
			tr.want(uint64(21+i), rangeOf(0, 8*c.place, 8))
			tr.mustNext()
			if got := e.Made() - before; got != c.more {
				t.Errorf("batch %d was made %d times again, not %d", c.place, got, c.more)
			}
		}
		tr.want(30, rangeOf(0, 0, 900))
		if a := tr.mustNext(); a.failure != nil {
			t.Errorf("a batch larger than what is kept: %v", a.failure)
		}
	})
}

// Whoever waits for a batch of somebody else has it, whatever becomes of that one.
func TestPassengersOutliveTheirFlight(t *testing.T) {
	for name, end := range map[string]func(first *trainer){
		"cancelled": func(first *trainer) { first.send(cancelOf(1)) },
		"gone":      func(first *trainer) { first.cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &servertest.Engine{Delay: func(*batch.Name) time.Duration { return time.Second }}
				n, _ := sharing(t, e, 1<<20)
				first, second, third := n.started(), n.started(), n.started()
				for _, tr := range []*trainer{first, second, third} {
					tr.want(1, rangeOf(0, 0, 8))
					synctest.Wait()
				}
				if m := e.Making(); m != 1 {
					t.Errorf("%d are in the making", m)
				}
				second.send(cancelOf(1))
				end(first)
				if a := second.mustNext(); a.failure == nil {
					t.Error("a want that was cancelled has a batch")
				}
				if a := third.mustNext(); a.failure != nil {
					t.Errorf("no batch: %v", a.failure)
				}
			})
		})
	}
}

// A failure is nobody else's.
func TestFailuresAreNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Int32
		e := &servertest.Engine{Delay: func(*batch.Name) time.Duration { return time.Second }}
		e.Fail = func(*batch.Name) error {
			if fails.Add(1) == 1 {
				return &pipeline.ReadError{Key: "a", Cause: errors.New("no such device")}
			}
			return nil
		}
		n, _ := sharing(t, e, 1<<20)
		first, second := n.started(), n.started()
		first.want(1, rangeOf(0, 0, 8))
		synctest.Wait()
		second.want(1, rangeOf(0, 0, 8))
		if a := first.mustNext(); a.failure == nil {
			t.Error("the read error did not come")
		}
		if a := second.mustNext(); a.failure != nil {
			t.Errorf("it came to another job: %v", a.failure)
		}
	})
}

// A job that starves has the batch that a sated one has queued made at once, once for both, and pays for it itself;
// what the sated one has begun goes on from where it is.
func TestUrgentWantsHasten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sample = 10 * time.Millisecond
		e := &servertest.Engine{Cores: 1, SampleTime: sample}
		n, _ := sharing(t, e, 1<<20)
		sated, starving, other := n.started(), n.started(), n.started()
		for id := uint64(1); id <= 10; id++ {
			sated.due(id, rangeOf(0, 8*id, 8), time.Duration(id)*time.Minute)
		}
		other.due(1, rangeOf(0, 800, 80), 30*time.Second) // before all of these
		time.Sleep(sample / 2)
		began := time.Now()
		for _, id := range []uint64{1, 10} {
			starving.due(id, rangeOf(0, 8*id, 8), 0)
		}
		for _, id := range []uint64{1, 10} {
			if a := starving.mustNext(); a.failure != nil || a.id != id {
				t.Errorf("an answer to %d, or %v, not to %d", a.id, a.failure, id)
			}
		}
		if took := time.Since(began); took > 17*sample {
			t.Errorf("two batches of 8 took %v beside others that are due later", took)
		}
		for range 10 {
			if a := sated.mustNext(); a.failure != nil {
				t.Error(a.failure)
			}
		}
		if a := other.mustNext(); a.failure != nil {
			t.Error(a.failure)
		}
		if made := e.SamplesMade(); made != 160 {
			t.Errorf("%d samples were made, not 160", made)
		}
	})
}
