package main

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// writeLayout makes dir anew, an OCI layout of one image. What loads a layout finds the image's name in the annotations of its index. An index
// of one platform is left out: the image itself stands there, which also tools take that know no indexes.
func writeLayout(dir string, index v1.ImageIndex) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	m, err := index.IndexManifest()
	if err != nil {
		return err
	}
	addendum := mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{Annotations: m.Annotations}}
	if len(m.Manifests) == 1 {
		image, err := index.Image(m.Manifests[0].Digest)
		if err != nil {
			return err
		}
		addendum = mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Annotations: m.Annotations, Platform: m.Manifests[0].Platform}}
	}
	_, err = layout.Write(dir, mutate.AppendManifests(empty.Index, addendum))
	return err
}

// writeArchive puts all files of dir into one tar, in the order of their names and with the times of 1970.
func writeArchive(file, dir string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if e := out.Close(); err == nil {
			err = e
		}
	}()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return archive(w, filepath.ToSlash(name), path, d)
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// archive writes one file or folder.
func archive(w *tar.Writer, name, path string, d fs.DirEntry) error {
	h := &tar.Header{Name: name, Mode: 0o644, ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	if d.IsDir() {
		h.Name, h.Mode, h.Typeflag = name+"/", 0o755, tar.TypeDir
		return w.WriteHeader(h)
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	h.Size = info.Size()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
