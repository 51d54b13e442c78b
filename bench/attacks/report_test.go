//go:build linux

package main

import (
	"math"
	"testing"
)

// A node that spends a tenth of its cores on 1000 units a second, and says something else than it should once.
func TestJudge(t *testing.T) {
	a := find("no token")
	attacked := stretch{Samples: 900, Seconds: 1, CoreSeconds: 1, Bytes: 5, Attacker: tally{Units: 2000, Seconds: 2, Answers: map[string]int{"Unauthenticated": 1999, hungUp: 1}}}
	out := result{Rounds: []round{{attacked, stretch{Samples: 1000, Seconds: 1, CoreSeconds: 1, Bytes: 4}}}}
	out.judge(a)
	if !out.OK || out.Rate.Median != 0.9 || out.Work.Median != 0.9 || out.PerSecond != 1000 || math.Abs(out.Cores-0.1) > 1e-9 || math.Abs(out.Cost-1e-4) > 1e-9 || out.AttackedBytes != 5 || out.ControlBytes != 4 {
		t.Errorf("%+v", out)
	}
	out.Rounds[0].Attacked.Attacker.Answers["OK"] = 1
	if out.judge(a); out.OK {
		t.Error("whoever has no token is let in, and that is right")
	}
	delete(out.Rounds[0].Attacked.Attacker.Answers, "OK")
	out.Rounds[0].Attacked.Samples = 890
	if out.judge(a); out.OK {
		t.Error("0.89 of the rate is enough")
	}
	pings := stretch{Samples: 1000, Seconds: 1, CoreSeconds: 1, Attacker: tally{Units: 10, Seconds: 1, Answers: map[string]int{"taken": 1}}}
	out = result{Rounds: []round{{pings, pings}}}
	if out.judge(find("pings")); out.OK {
		t.Error("a node that never hangs up on pings is right")
	}
	pings.Attacker.Answers[hungUp] = 1
	if out.judge(find("pings")); !out.OK {
		t.Error("pings are taken before the node hangs up, and that is wrong")
	}
}

// Every attack has a name of its own, and says which answers are right.
func TestAttacks(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range attacks() {
		if seen[a.name] || a.unit == "" || !a.right(hungUp) || a.right("OK") {
			t.Errorf("%+v", a)
		}
		seen[a.name] = true
	}
}
