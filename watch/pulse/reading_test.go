package pulse_test

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/control"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// starvation is a job of so many ranks whose steps take twice as long as they would, for at each of them another rank
// waits for its batch. Of its ranks a node hears some.
func starvation(world uint32, seconds float64, heard ...uint32) control.Reading {
	var b pulse.Registry
	for _, rank := range heard {
		l := b.OpenSession("job", "plan", start)
		var steps []*pb.Step
		for k := range uint64(pulse.KeptSteps) {
			s := &pb.Step{Number: k, Step: seconds, Idle: proto.Float64(0)}
			if k%uint64(world) == uint64(rank) {
				s.Wait, s.Idle = seconds/2, proto.Float64(seconds/2)
			}
			steps = append(steps, s)
		}
		l.Report(&pb.Pulse{Rank: rank, World: world, Samples: 100, Steps: steps}, start)
	}
	return b.Jobs(start)[0].Reading()
}

// A node that hears all ranks lines their steps up, however many there are in the time that is looked at.
func TestReadingIsLinedUp(t *testing.T) {
	for _, seconds := range []float64{0.05, 0.1, 0.5, 2} {
		r := starvation(4, seconds, 0, 1, 2, 3)
		if truth := 4 * 100 / (seconds / 2); math.Abs(r.Demand/truth-1) > 0.01 {
			t.Errorf("steps of %g s: demand %.0f, is %.0f", seconds, r.Demand, truth)
		}
	}
}

// A node that hears some of the ranks reads a demand off them: more than the job gets, and no more than it would take.
func TestReadingOfSomeRanks(t *testing.T) {
	for _, seconds := range []float64{0.05, 0.1, 0.5, 2} {
		supply, truth := 4*100/seconds, 4*100/(seconds/2)
		before := supply
		for _, heard := range [][]uint32{{2}, {2, 0}, {2, 0, 3}} {
			r := starvation(4, seconds, heard...)
			if r.Demand <= before*1.05 || r.Demand >= truth || math.Abs(r.Supply/supply-1) > 1e-9 {
				t.Errorf("steps of %g s, ranks %v: demand %.0f, is %.0f; supply %.0f, is %.0f", seconds, heard, r.Demand, truth, r.Supply, supply)
			}
			before = r.Demand
		}
	}
}

// A loop that waits for half a minute before its first step starves; one that begins does not.
func TestStarvedBeforeTheFirstStep(t *testing.T) {
	for blocked, want := range map[time.Duration]bool{0: false, 2 * time.Second: false, time.Minute: true} {
		var b pulse.Registry
		b.OpenSession("job", "plan", start).Report(&pb.Pulse{World: 2, Samples: 100, Blocked: durationpb.New(blocked)}, start)
		if r := b.Jobs(start)[0].Reading(); r.Starved != want || r.Demand != 0 {
			t.Errorf("blocked for %s: %+v", blocked, r)
		}
	}
}
