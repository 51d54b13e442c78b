package imageindex

import (
	"bytes"
	"testing"
)

// BenchmarkFind looks up records of files as large as photographs are; bytes are the files'. It allocates nothing.
func BenchmarkFind(b *testing.B) {
	s := opened(b, Options{Dir: b.TempDir()})
	defer s.Close()
	var files [samples][]byte
	for i := range files {
		files[i] = bytes.Repeat([]byte{byte(i), 1, 2, 3}, 110_000/4)
		s.Put(i, Digest(files[i]), bytes.Repeat([]byte{byte(i)}, 2200))
	}
	b.SetBytes(int64(len(files[0])))
	b.ReportAllocs()
	var data []byte
	for i := 0; b.Loop(); i++ {
		if data, _ = s.Find(i%samples, Digest(files[i%samples]), data); len(data) != 2200 {
			b.Fatal("not found")
		}
	}
}
