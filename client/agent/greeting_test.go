package agent

import (
	"strings"
	"testing"
)

// A Loader of another release gets the agent's greeting, and one sentence as the answer to whatever it calls.
func TestGreeting(t *testing.T) {
	for name, c := range map[string]struct {
		agent  string
		change func(*greeting)
		words  string
	}{
		"the same":        {"1.2", func(*greeting) {}, ""},
		"unreleased":      {"dev", func(g *greeting) { g.Version = "1.3" }, ""},
		"another version": {"1.2", func(g *greeting) { g.Version = "1.3" }, "(version 1.3) are of different releases"},
		"another socket":  {"dev", func(g *greeting) { g.Socket++ }, "are of different releases"},
		"another order":   {"1.2", func(g *greeting) { g.Units["order"]++ }, "are of different releases"},
	} {
		tr := startWith(t, &fakeNode{}, Options{Version: c.agent, Build: "1.2 (aaaa)"})
		theirs := tr.agent.options.newGreeting()
		c.change(&theirs)
		tr.send(tr.loader, theirs.toPacket())
		if own, err := parseGreeting(tr.receive()[1:]); err != nil || own.Build != "1.2 (aaaa)" || own.Version != c.agent {
			t.Errorf("%s: %+v, %v", name, own, err)
		}
		answer, _ := tr.call("status", nil, c.words != "")
		if message, _ := answer["message"].(string); !strings.Contains(message, c.words) || c.words != "" && (answer["kind"] != "version" || !strings.Contains(message, "1.2 (aaaa)")) {
			t.Errorf("%s: %v", name, answer)
		}
	}
}

// A package of before greetings hears it in words that it knows.
func TestNoGreeting(t *testing.T) {
	own := (&Options{Version: "1.2", Build: "1.2 (aaaa)"}).newGreeting()
	f := describeError(own.mismatchWith(nil))
	if f.Kind != "version" || !strings.Contains(f.Message, "too old to tell its version") || !strings.Contains(f.Message, "1.2 (aaaa)") {
		t.Errorf("%+v", f)
	}
	l := newLoader(New(Options{Version: "1.2"}), nil)
	if l.mismatch == nil {
		t.Error("calls are answered before a greeting")
	}
	if _, err := parseGreeting([]byte("no")); err == nil {
		t.Error("what is no JSON is a greeting")
	}
}
