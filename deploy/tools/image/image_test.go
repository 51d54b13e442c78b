package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// makeImage runs the command on made-up programs, and returns the folder of the layout.
func makeImage(t *testing.T, platforms ...string) string {
	t.Helper()
	dir := t.TempDir()
	doc, out := filepath.Join(dir, "LICENSE"), filepath.Join(dir, "image")
	if err := os.WriteFile(doc, []byte("as you like\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-out", out, "-name", "example/feedwater:1.2", "-version", "1.2", "-revision", "abc", "-created", "1700000000", "-doc", doc}
	for i, p := range platforms {
		file := filepath.Join(dir, fmt.Sprint("program", i))
		if err := os.WriteFile(file, []byte("program for "+p), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, p+"="+file)
	}
	if err := run(args); err != nil {
		t.Fatal(err)
	}
	return out
}

// imagesOf are the images of a layout, that the library which reads it finds nothing wrong with.
func imagesOf(t *testing.T, dir string) []v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	return collect(t, index)
}

func collect(t *testing.T, index v1.ImageIndex) (images []v1.Image) {
	t.Helper()
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Manifests {
		if d.MediaType.IsIndex() {
			below, err := index.ImageIndex(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			images = append(images, collect(t, below)...)
			continue
		}
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, image)
	}
	return images
}

// list is what an image's layers hold, as lines, and the text of each file.
func list(t *testing.T, image v1.Image) (lines []string, texts map[string]string) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	texts = map[string]string{}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for files := tar.NewReader(r); ; {
			h, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s %o %d:%d %d", h.Name, h.Mode, h.Uid, h.Gid, h.ModTime.Unix()))
			texts[h.Name] = string(text)
		}
	}
	return lines, texts
}

// An image holds the program, roots of certificates, a user and its folders, and nothing else; folders come before what lies in them.
func TestImage(t *testing.T) {
	images := imagesOf(t, makeImage(t, "linux/amd64"))
	if len(images) != 1 {
		t.Fatalf("%d images", len(images))
	}
	lines, texts := list(t, images[0])
	want := `etc/ 755 0:0 0
etc/group 644 0:0 0
etc/passwd 644 0:0 0
etc/ssl/ 755 0:0 0
etc/ssl/certs/ 755 0:0 0
etc/ssl/certs/ca-certificates.crt 644 0:0 0
home/ 755 0:0 0
home/nonroot/ 700 65532:65532 0
tmp/ 1777 0:0 0
usr/ 755 0:0 0
usr/bin/ 755 0:0 0
usr/bin/feedwater 755 0:0 0
usr/share/ 755 0:0 0
usr/share/doc/ 755 0:0 0
usr/share/doc/feedwater/ 755 0:0 0
usr/share/doc/feedwater/LICENSE 644 0:0 0`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("the image holds\n%s", got)
	}
	if texts["usr/bin/feedwater"] != "program for linux/amd64" || texts["usr/share/doc/feedwater/LICENSE"] != "as you like\n" {
		t.Error("another program or licence")
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM([]byte(texts["etc/ssl/certs/ca-certificates.crt"])) {
		t.Error("no roots of certificates")
	}
	if n := strings.Count(texts["etc/ssl/certs/ca-certificates.crt"], "BEGIN CERTIFICATE"); n < 100 {
		t.Errorf("%d roots", n)
	}
	c, err := images[0].ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.Config.User != "65532:65532" || !slices.Equal(c.Config.Entrypoint, []string{"/usr/bin/feedwater"}) || c.Architecture != "amd64" || c.OS != "linux" ||
		!c.Created.Equal(time.Unix(1700000000, 0)) || c.Config.Labels["org.opencontainers.image.revision"] != "abc" {
		t.Errorf("%+v", c)
	}
}

// Several platforms have an image each, below one index.
func TestPlatforms(t *testing.T) {
	images := imagesOf(t, makeImage(t, "linux/amd64", "linux/arm64"))
	var of []string
	for _, image := range images {
		c, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		_, texts := list(t, image)
		of = append(of, c.Architecture+": "+texts["usr/bin/feedwater"])
	}
	if got := strings.Join(of, ", "); got != "amd64: program for linux/amd64, arm64: program for linux/arm64" {
		t.Error(got)
	}
}

// Whatever loads a layout finds the image's name, by the annotations that podman and containerd read.
func TestName(t *testing.T) {
	for _, platforms := range [][]string{{"linux/amd64"}, {"linux/amd64", "linux/arm64"}} {
		index, err := layout.ImageIndexFromPath(makeImage(t, platforms...))
		if err != nil {
			t.Fatal(err)
		}
		m, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		a := m.Manifests[0].Annotations
		if len(m.Manifests) != 1 || a["org.opencontainers.image.ref.name"] != "1.2" || a["io.containerd.image.name"] != "docker.io/example/feedwater:1.2" {
			t.Errorf("%v: %+v", platforms, m.Manifests)
		}
	}
}

// The same files at other times, in another folder, are the same image, and another program is another.
func TestSameBytes(t *testing.T) {
	read := func(dir string) []byte {
		text, err := os.ReadFile(dir + ".tar")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	a, b, c := makeImage(t, "linux/amd64"), makeImage(t, "linux/amd64"), makeImage(t, "linux/arm64")
	if !bytes.Equal(read(a), read(b)) {
		t.Error("two images of the same files differ")
	}
	if bytes.Equal(read(a), read(c)) {
		t.Error("an image of another program is the same")
	}
}

// What cannot be an image is said.
func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	noise := make([]byte, mostBytes+1)
	for i, x := range noise {
		noise[i] = x ^ byte(i*i>>7) ^ byte(i*2654435761>>13)
	}
	if err := os.WriteFile(large, noise, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"are needed":                 {"-out", dir, "-name", "a:1"},
		"no program for a platform":  {"-out", dir + "/x", "-name", "a:1", "program"},
		"no such file":               {"-out", dir + "/x", "-name", "a:1", "linux/amd64=" + dir + "/none"},
		"the image for linux/amd64 ": {"-out", dir + "/x", "-name", "a:1", "linux/amd64=" + large},
	} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// The Dockerfile runs the same program as the same user, and copies what make image has made.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	c, err := imagesOf(t, makeImage(t, "linux/amd64"))[0].ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	entry, err := json.Marshal(c.Config.Entrypoint)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"USER " + c.Config.User, "ENTRYPOINT " + string(entry), "EXPOSE 7070", "WORKDIR " + c.Config.WorkingDir} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("the Dockerfile has no line %s", line)
		}
	}
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	made := strings.ReplaceAll(string(makefile), "bin/image/feedwater-$(subst", "bin/image/feedwater-linux-${TARGETARCH} ")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "COPY "); ok {
			words := strings.Fields(rest)
			for _, from := range words[:len(words)-1] {
				if !strings.Contains(made, from) {
					t.Errorf("nothing makes %s", from)
				}
			}
		}
	}
}

// Kubernetes completes the name of a pod's image, and containerd does not complete that of an import.
func TestContainerdName(t *testing.T) {
	for name, want := range map[string]string{
		"feedwater:1.2":                      "docker.io/library/feedwater:1.2",
		"example/feedwater:1.2":              "docker.io/example/feedwater:1.2",
		"registry.example.org/feedwater:1.2": "registry.example.org/feedwater:1.2",
		"localhost/feedwater:1.2":            "localhost/feedwater:1.2",
		"registry:5000/team/feedwater:1.2":   "registry:5000/team/feedwater:1.2",
	} {
		if got := containerdName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
