package manifest

import "testing"

func TestIsLocal(t *testing.T) {
	for _, key := range []string{"a", "a/b.jpg", "a/..b", "...", "a/.b/c", "a\nb/c"} {
		if !isLocal([]byte(key)) {
			t.Errorf("%q is not local", key)
		}
	}
	for _, key := range []string{"", "/", "/a", "a/", "a//b", "..", ".", "../a", "a/..", "a/../b", "./a", "a/./b", "a\x00b", "a/b\x00"} {
		if isLocal([]byte(key)) {
			t.Errorf("%q is local", key)
		}
	}
}
