package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

func TestFingerprint(t *testing.T) {
	tree := []string{"a/x.jpg", "a/sub/y.png", "b/sub/z.jpg", "b/z.jpg"}
	s := open(t, treetest.Grow(t, t.TempDir(), tree...), options(t))

	// The rule of class.go once more, in its plainest form.
	text := func(s string) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s }
	size := func(n int) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
	a := sha256.Sum256([]byte("feedwater class 1\n" + text("a") + text("x.jpg") + size(7) + text("sub/y.png") + size(11)))
	b := sha256.Sum256([]byte("feedwater class 1\n" + text("b") + text("z.jpg") + size(7) + text("sub/z.jpg") + size(11)))
	all := sha256.Sum256([]byte("feedwater snapshot 1\n\x02\x00\x00\x00" +
		"\x00\x00\x00\x00" + string(a[:]) + "\x01\x00\x00\x00" + string(b[:])))
	if want := hex.EncodeToString(all[:]); s.Fingerprint() != want {
		t.Errorf("fingerprint %s, want %s", s.Fingerprint(), want)
	}
	// Pins the contract between nodes of different versions: a plan that pins a fingerprint must find its data again.
	if want := "5a010987bd0d922d34f3d4cbe7a7ecc8546a43a98bcc9d83184951ba974b8698"; s.Fingerprint() != want {
		t.Errorf("fingerprint %s, want %s", s.Fingerprint(), want)
	}
	if got, want := s.Classes()[1].Digest, binary.BigEndian.Uint64(b[:]); got != want {
		t.Errorf("digest of class b %016x, want %016x", got, want)
	}
}

func TestFingerprintIsOfTheDataAlone(t *testing.T) {
	tree := []string{"a/x.jpg", "a/y.jpg", "b/sub/z.jpg"}
	first := open(t, treetest.Grow(t, t.TempDir(), tree...), options(t))
	elsewhere := treetest.Grow(t, t.TempDir(), tree...)
	treetest.Grow(t, elsewhere, "a/notes.txt", "b/empty/")
	treetest.Must(t, os.Chtimes(filepath.Join(elsewhere, "a/x.jpg"), time.Time{}, time.Unix(1, 0)))
	if got := open(t, elsewhere, options(t)).Fingerprint(); got != first.Fingerprint() {
		t.Errorf("the same pictures elsewhere: %s and %s", first.Fingerprint(), got)
	}
	seen := map[string]string{first.Fingerprint(): "the first"}
	for name, other := range map[string][]string{
		"renamed file":   {"a/x.jpg", "a/w.jpg", "b/sub/z.jpg"},
		"renamed class":  {"A/x.jpg", "A/y.jpg", "b/sub/z.jpg"},
		"renamed folder": {"a/x.jpg", "a/y.jpg", "b/SUB/z.jpg"},
		"other class":    {"a/x.jpg", "b/y.jpg", "b/sub/z.jpg"},
		"one less":       {"a/x.jpg", "b/sub/z.jpg"},
		"shifted label":  {"0/w.jpg", "a/x.jpg", "a/y.jpg", "b/sub/z.jpg"},
	} {
		got := open(t, treetest.Grow(t, t.TempDir(), other...), options(t)).Fingerprint()
		if twin, ok := seen[got]; ok {
			t.Errorf("%s has the fingerprint of %s", name, twin)
		}
		seen[got] = name
	}
	resized := treetest.Grow(t, t.TempDir(), tree...)
	treetest.Must(t, os.Truncate(filepath.Join(resized, "a/x.jpg"), 3))
	if _, ok := seen[open(t, resized, options(t)).Fingerprint()]; ok {
		t.Error("another size has the same fingerprint")
	}
}
