package main

import (
	"strings"
	"testing"
)

// Programs that ask once are told by the exit code that no node answers; one node that does is enough.
func TestTopOnceTellsWhetherANodeAnswers(t *testing.T) {
	n := start(t, "--data", "photos="+pictures(t, 1))
	for _, c := range []struct {
		nodes []string
		code  int
		says  string
	}{
		{[]string{n.addr, "127.0.0.1:1"}, exitOK, ""},
		{[]string{"127.0.0.1:1", "127.0.0.1:2"}, exitError, "no node answers: 127.0.0.1:1, 127.0.0.1:2"},
		{[]string{"127.0.0.1:1," + n.addr}, exitOK, ""},
		{[]string{"127.0.0.1:1, 127.0.0.1:2,", "127.0.0.1:3"}, exitError, "no node answers: 127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3"},
		{[]string{"cpu-1:7070"}, exitUsage, "give --tls-ca; --insecure, or"},
		{nil, exitOK, ""},
	} {
		for _, form := range []string{"--json=false", "--json"} {
			code, out, errs := call(append([]string{"top", "--once", "--interval", "0.1s", form}, c.nodes...)...)
			if code != c.code || !strings.Contains(errs, c.says) || out == "" && code != exitUsage {
				t.Errorf("%q: exit code %d, %q, %q", c.nodes, code, out, errs)
			}
		}
	}
}
