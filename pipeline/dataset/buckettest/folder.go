package buckettest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// OfFolder starts a server for a test that has the files below a folder, below the prefix p. The test's environment has its keys, and no other server's.
func OfFolder(t testing.TB, root string) *Server {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", Secret)
	t.Setenv("AWS_ENDPOINT_URL", "")
	t.Setenv("AWS_ENDPOINT_URL_S3", "")
	s := New()
	t.Cleanup(s.Close)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		below, _ := filepath.Rel(root, path)
		s.Put("p/"+filepath.ToSlash(below), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
