//go:build testnode

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/feedwater-io/feedwater/pipeline"
)

func TestNodeOfOtherNumericsIsVerified(t *testing.T) {
	data := pictures(t, 1)
	a, b := start(t, "--data", "photos="+data), start(t, "--data", "photos="+data, "--test-numerics", strings.Repeat("ab", 16))
	code, out, errs := verify("--nodes", a.addr+","+b.addr, "--batches", "4")
	if code != exitError || !strings.Contains(out, b.addr+" has other numerics (") || !strings.Contains(out, "all equal") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// The flags reach the pipeline.
func TestNodeHasFlags(t *testing.T) {
	f, node := pflag.NewFlagSet("serve", pflag.ContinueOnError), pipeline.TestNode{}
	addTestNode(f, &node)
	want := pipeline.TestNode{SampleTime: 70 * time.Millisecond, Numerics: "ab"}
	if err := f.Parse([]string{"--test-sample-time", "70ms", "--test-numerics", "ab"}); err != nil || node != want {
		t.Errorf("%+v, %v", node, err)
	}
}
