package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// Whoever reads JSON logs gets durations in seconds, in groups too; people read them with their unit.
func TestDurationsInLogs(t *testing.T) {
	for format, want := range map[string]string{"json": `"timeout":30.5,"of":{"wait":0.25}`, "text": "timeout=30.5s of.wait=250ms"} {
		var b strings.Builder
		o := logOptions{format: format, level: "info"}
		if err := o.checkFlags(); err != nil {
			t.Fatal(err)
		}
		log := o.newLog(&b)
		log.Debug("unseen")
		log.With("timeout", 30500*time.Millisecond).WithGroup("of").Info("draining", "wait", 250*time.Millisecond)
		if !strings.Contains(b.String(), want) || strings.Contains(b.String(), "unseen") {
			t.Errorf("%s: %s, want %s", format, b.String(), want)
		}
		if format == "json" && !json.Valid([]byte(b.String())) {
			t.Errorf("no JSON: %s", b.String())
		}
	}
	for _, o := range []logOptions{{"xml", "info"}, {"text", "loud"}} {
		if o.checkFlags() == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
