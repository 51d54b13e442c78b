//go:build race

package main

// raceFlags builds the program as this test was.
var raceFlags = []string{"-race"}
