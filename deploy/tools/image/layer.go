package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry is a file or a folder of an image.
type entry struct {
	name  string // without a slash before it
	mode  int64
	owner int // user and group
	dir   bool
	body  []byte
}

// folders are these and all above them, each once.
func folders(names ...string) []entry {
	var all []entry
	for _, name := range names {
		for ; name != "."; name = path.Dir(name) {
			if !slices.ContainsFunc(all, func(e entry) bool { return e.name == name }) {
				all = append(all, entry{name: name, mode: 0o755, dir: true})
			}
		}
	}
	return all
}

// baseEntries are what programs expect of a machine: roots of certificates, a name for the user, a home and a place for temporary files.
func baseEntries() []entry {
	return append(folders("etc/ssl/certs", "home"),
		entry{name: "etc/group", mode: 0o644, body: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", nobody)},
		entry{name: "etc/passwd", mode: 0o644, body: fmt.Appendf(nil,
			"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/home/nonroot:/sbin/nologin\n", nobody, nobody)},
		entry{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, body: rootCertificates()},
		entry{name: "home/nonroot", mode: 0o700, owner: nobody, dir: true},
		entry{name: "tmp", mode: 0o1777, dir: true},
	)
}

// newLayer makes a layer of entries, sorted by name and with the times of 1970, so that the same entries are the same bytes.
func newLayer(entries []entry) (v1.Layer, error) {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{
			Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.body)),
			ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if e.dir {
			h.Name, h.Typeflag = e.name+"/", tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.body); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression))
}
