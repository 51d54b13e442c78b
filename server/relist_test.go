package server_test

import (
	"archive/tar"
	"bytes"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/snapshots"
)

// A scan takes the list that is kept, unless it has to list anew.
func TestEngineListsAnew(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", buckettest.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", buckettest.Secret)
	bucket := buckettest.New()
	defer bucket.Close()
	var shard bytes.Buffer
	w := tar.NewWriter(&shard)
	for name, text := range map[string]string{"1.jpg": "x", "1.cls": "0"} {
		treetest.Must(t, w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600}))
		_, err := w.Write([]byte(text))
		treetest.Must(t, err)
	}
	treetest.Must(t, w.Close())
	bucket.Put("p/s.tar", shard.Bytes())
	p, err := pipeline.Open(pipeline.Options{Workers: 1})
	treetest.Must(t, err)
	defer p.Close()
	e := server.NewEngine(p, dataset.Options{CacheDir: t.TempDir()})
	for i, anew := range []bool{false, false, true} {
		data, err := e.Scan(t.Context(), snapshots.Folder{Path: dataset.Join(bucket.Place("p"), "s.tar")}, anew, func(int) {})
		treetest.Must(t, err)
		s, ok := data.(*dataset.Snapshot)
		if kept := i > 0 && !anew; !ok || s.Cached() != kept {
			t.Errorf("scan %d, anew %v: from the kept list: %v", i, anew, s.Cached())
		}
		treetest.Must(t, data.Close())
	}
}
