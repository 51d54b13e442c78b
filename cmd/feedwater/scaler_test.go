package main

import (
	"slices"
	"strings"
	"testing"
)

func TestScalerOptions(t *testing.T) {
	for _, c := range []struct {
		o    scalerOptions
		want string
	}{
		{scalerOptions{listen: "127.0.0.1:7072"}, "give --nodes"},
		{scalerOptions{listen: "127.0.0.1:7072", nodes: []string{"cpu-1"}}, "--nodes cpu-1"},
		{scalerOptions{listen: "127.0.0.1:7072", nodes: []string{"cpu-1:7070"}}, "another machine"},
		{scalerOptions{listen: ":7072", nodes: []string{"localhost:7070"}}, "reachable from other machines"},
		{scalerOptions{listen: ":7072", nodes: []string{"cpu-1:7070"}, insecure: true}, ""},
	} {
		if err := c.o.check(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

// A name is looked up; one that nobody has yet stands for no nodes.
func TestScalerLooksNamesUp(t *testing.T) {
	o := scalerOptions{nodes: []string{"localhost:7070", "nobody.invalid:7070"}}
	all, err := o.look(t.Context())
	if err != nil {
		t.Skip("names cannot be looked up here: ", err)
	}
	if !slices.Contains(all, "127.0.0.1:7070") && !slices.Contains(all, "[::1]:7070") || slices.ContainsFunc(all, func(a string) bool { return strings.HasPrefix(a, "nobody") }) {
		t.Errorf("%v", all)
	}
}
