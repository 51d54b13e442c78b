package main

import "testing"

// TestMutantsApply keeps the mutants up to date: each replaces what is in the sources today.
func TestMutantsApply(t *testing.T) {
	for place, least := range map[string]int{"testdata": 10, "testdata/cluster": 1} {
		all, err := load(place, "../../..")
		if err != nil {
			t.Fatal(err)
		}
		if len(all) < least {
			t.Errorf("%s: %d mutants", place, len(all))
		}
	}
}
