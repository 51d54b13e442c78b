package main

import "testing"

// TestMutantsApply keeps the mutants up to date: each replaces what is in the sources today.
func TestMutantsApply(t *testing.T) {
	all, err := load("testdata", "../../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Errorf("%d mutants", len(all))
	}
}
