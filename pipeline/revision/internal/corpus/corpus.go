// Package corpus writes what two builds are compared by: files of every format, good and damaged, and cases, each a
// plan on a folder of files. Between them the cases use every unit of package revision that decides pixels, each op
// with many arguments in both dialects. The same seed writes the same corpus. Command vectors runs it; its form changes
// only in ways that older ones of that command understand.
package corpus

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// Case is a plan on a folder.
type Case struct {
	Name string `json:"name"`
	// Units that it uses.
	Units []string `json:"units"`
	// Folder below the corpus, with classes; of masks, if there are some.
	Folder string `json:"folder"`
	Masks  string `json:"masks,omitempty"`
	// Plan without a source.
	Plan json.RawMessage `json:"plan"`
	// Epochs that are made, from 0.
	Epochs int `json:"epochs"`
	// Index has pictures decoded twice, with an index of the first time.
	Index bool `json:"index,omitempty"`
}

// CasesFile is the name of the list of cases in a corpus.
const CasesFile = "cases.json"

// LoopsFolder has the pictures that Loops is run on.
const LoopsFolder = smallFolder

// Loops is a Python program that prints what training loops get of a folder, beside the agent: order, and last hop.
//
//go:embed loops.py
var Loops string

// Write makes a corpus in dir, which exists, of the files in the module at root. Its cases are those that use one of
// these units, of no unit: all, and none of those without.
func Write(dir, root string, seed uint64, units, without []string) ([]Case, error) {
	f := files{dir: dir, root: root, random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // the same each time
	if err := f.write(); err != nil {
		return nil, err
	}
	cases := allCases(seed)
	for i := range cases {
		cases[i].Name, cases[i].Units = fmt.Sprintf("%04d %s", i, cases[i].Name), cases[i].units()
	}
	cases = slices.DeleteFunc(cases, func(c Case) bool {
		return len(units) > 0 && !usesAny(&c, units) || usesAny(&c, without)
	})
	text, err := json.MarshalIndent(cases, "", " ")
	if err != nil {
		return nil, err
	}
	return cases, os.WriteFile(filepath.Join(dir, CasesFile), text, 0o600)
}

// usesAny reports whether a case uses one of these units.
func usesAny(c *Case, units []string) bool {
	return slices.ContainsFunc(c.Units, func(u string) bool { return slices.Contains(units, u) })
}

func allCases(seed uint64) []Case { return slices.Concat(codecCases(), oversizeCases(), opCases(seed)) }

// names are the units of a set.
func names(s revision.Set) (all []string) {
	for name := range s {
		all = append(all, name)
	}
	return all
}
