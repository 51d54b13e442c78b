package corpus

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// Every unit of a node is used by a case, every op with all its arguments, and what is written is the same each time.
func TestTheCorpusIsWhole(t *testing.T) {
	dir := t.TempDir()
	cases, err := Write(dir, filepath.Join("..", "..", "..", ".."), 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]int{}
	for _, c := range cases {
		for _, u := range c.Units {
			used[u]++
		}
		if !parses(c.Plan) {
			t.Errorf("%s is refused: %s", c.Name, c.Plan)
		}
	}
	for unit := range revision.Build() {
		if least := 5; unit != revision.LastHop && used[unit] < least {
			t.Errorf("%s is used by %d cases, not %d", unit, used[unit], least)
		}
	}
	again := allCases(1)
	for i := range again {
		if string(again[i].Plan) != string(cases[i].Plan) {
			t.Fatalf("case %d is another the second time", i)
		}
	}
}

// Cases of an op that the other tree does not have cannot be compared.
func TestCasesOfSomeUnitsAreLeftOut(t *testing.T) {
	pad := revision.Op("Pad")
	cases, err := Write(t.TempDir(), filepath.Join("..", "..", "..", ".."), 1, []string{revision.Batch}, []string{pad})
	if err != nil || len(cases) == 0 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		if !slices.Contains(c.Units, revision.Batch) || slices.Contains(c.Units, pad) {
			t.Fatalf("%s uses %v", c.Name, c.Units)
		}
	}
}

// An argument that an op got since, and that nothing is drawn of, would not be compared.
func TestNoArgumentIsForgotten(t *testing.T) {
	for _, op := range ops() {
		known := knownTo(op, neededBy(op))
		plan, err := pipeline.ParsePlan(planOf(drawOne(t, op)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := plan.Transforms.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for member := range strings.SplitSeq(string(text), `"`) {
			if strings.Trim(member, "abcdefghijklmnopqrstuvwxyz_") == "" && strings.Contains(string(text), `"`+member+`":`) && member != "op" &&
				!slices.Contains(known, member) && !strings.Contains(string(text), `"transforms"`) && !slices.Contains(beside, member) {
				t.Errorf("%s has an argument %s, and nothing to draw it from", op, member)
			}
		}
	}
}

// beside are arguments that a node carries and the trainer's side uses.
var beside = []string{"decay", "lag", "mask_fill"}

func drawOne(t *testing.T, op string) string {
	t.Helper()
	if drawn := draw(rand.New(rand.NewPCG(1, 2)), op); len(drawn) > 0 {
		return drawn[0]
	}
	t.Fatalf("of %s no plan is drawn that parses", op)
	return ""
}
