package main

import (
	"os"
	"testing"
)

// Python has the constants that Go states.
func TestModuleIsCurrent(t *testing.T) {
	want, err := printModule("../..")
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../feedwater/_common/constants.py")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("constants.py is out of date: go generate ./python/constants, and commit. It should be:\n%s", want)
	}
}

// Names that no file has any more, and values that are no plain numbers, would be left out without a word.
func TestNamedConstantsAreThere(t *testing.T) {
	for _, s := range sources {
		all, err := readConstants("../../" + s.file)
		if err != nil || len(all) == 0 {
			t.Errorf("%s: %d constants, %v", s.file, len(all), err)
		}
		for _, name := range s.names {
			found := false
			for _, c := range all {
				found = found || c.name == name
			}
			if !found {
				t.Errorf("%s declares no %s", s.file, name)
			}
		}
	}
}
