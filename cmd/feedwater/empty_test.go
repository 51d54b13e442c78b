package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/feedwater-io/feedwater/local"
)

// A plan that takes empty classes is matched by the fingerprint of a folder that has some.
func TestMatchByFingerprintWithEmptyClasses(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "a", "1.png"), []byte("a picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := local.New(local.Options{})
	for _, allowed := range []bool{true, false} {
		text := fmt.Sprintf(`{"version": 1, "source": {"root": "", "path": "", "allow_empty": %t}}`, allowed)
		_, _, err := l.MatchByFingerprint(t.Context(), []byte(text), root, nil)
		if allowed != (err == nil) {
			t.Errorf("allow_empty %v: %v", allowed, err)
		}
	}
}
