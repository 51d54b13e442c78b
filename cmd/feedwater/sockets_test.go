package main

import (
	"os"
	"testing"
)

// Agents of two containers may have one number and share the folder of sockets: each has a socket of its own. What a dead one left makes room.
func TestSocketsOfAgentsOfOneNumber(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	one, err := listenForWatchers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, err := listenForWatchers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []string{one.Addr().String(), other.Addr().String()} {
		if isStale(l) {
			t.Errorf("nobody listens at %s", l)
		}
	}
	if all := agentSockets(); len(all) < 2 || one.Addr().String() == other.Addr().String() {
		t.Errorf("sockets: %q", all)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if isStale(one.Addr().String()) {
		t.Error("the end of one agent took the other's socket")
	}
	path := one.Addr().String()
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Errorf("%s is left", path)
	}
}
