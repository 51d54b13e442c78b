//go:build !testnode

package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// What users get has no flags for tests, and refuses them.
func TestNoFlagsForTests(t *testing.T) {
	newServe().Flags().VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, "test-") {
			t.Errorf("--%s", f.Name)
		}
	})
	for _, flag := range []string{"--test-sample-time=1s", "--test-numerics=ab"} {
		name, _, _ := strings.Cut(flag, "=")
		if code, _, errs := call("serve", "--data", "photos="+t.TempDir(), flag); code != exitUsage || !strings.Contains(errs, "unknown flag: "+name) {
			t.Errorf("%s: exit code %d: %s", flag, code, errs)
		}
	}
}
