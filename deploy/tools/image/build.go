package main

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nobody is the user and group that the program runs as: the one that is customary for images without a root user.
const nobody = 65532

// mostBytes is what an image of one platform may take where it is stored and sent, compressed.
const mostBytes = 30_000_000

// spec is what an image is made of.
type spec struct {
	name, version, revision string
	created                 time.Time
	docs                    []string // files of this machine
	programs                []program
}

// program is a static one for a platform.
type program struct {
	platform v1.Platform
	file     string
}

// parseProgram reads OS/ARCHITECTURE=FILE.
func parseProgram(arg string) (program, error) {
	platform, file, found := strings.Cut(arg, "=")
	p, err := v1.ParsePlatform(platform)
	if err != nil || !found || file == "" || p.OS == "" || p.Architecture == "" {
		return program{}, fmt.Errorf("%q is no program for a platform; write linux/amd64=FILE", arg)
	}
	return program{*p, file}, nil
}

// build makes an index of an image for each program. An image that is larger than mostBytes is an error.
func (s *spec) build() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range s.programs {
		image, err := s.image(p)
		if err != nil {
			return nil, err
		}
		if n, err := sizeOf(image); err != nil {
			return nil, err
		} else if n > mostBytes {
			return nil, fmt.Errorf("the image for %s has %d bytes, more than %d", p.platform, n, mostBytes)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &p.platform}})
	}
	return mutate.Annotations(index, s.labels()).(v1.ImageIndex), nil
}

// image has two layers: what is the same for all versions, and the program with its papers.
func (s *spec) image(p program) (v1.Image, error) {
	below, err := newLayer(baseEntries())
	if err != nil {
		return nil, err
	}
	entries, err := s.programEntries(p)
	if err != nil {
		return nil, err
	}
	above, err := newLayer(entries)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	history := v1.History{Created: v1.Time{Time: s.created}, CreatedBy: "make image"}
	if image, err = mutate.Append(image, mutate.Addendum{Layer: below, History: history}, mutate.Addendum{Layer: above, History: history}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = p.platform.OS, p.platform.Architecture, p.platform.Variant
	config.Created = v1.Time{Time: s.created}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", nobody, nobody), WorkingDir: "/", Env: []string{"PATH=/usr/bin"},
		Entrypoint: []string{"/" + programPath}, ExposedPorts: map[string]struct{}{"7070/tcp": {}}, Labels: s.labels(),
	}
	return mutate.ConfigFile(image, config)
}

// labels are those of the OCI's image specification.
func (s *spec) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "Feedwater",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.version":  s.version,
		"org.opencontainers.image.revision": s.revision,
		"org.opencontainers.image.created":  s.created.Format(time.RFC3339),
		"org.opencontainers.image.ref.name": path.Base(strings.ReplaceAll(s.name, ":", "/")),
		"io.containerd.image.name":          containerdName(s.name),
	}
}

// programPath is where the program lies in the image, and docPath what its licences, its notices and its SBOM lie in.
const (
	programPath = "usr/bin/feedwater"
	docPath     = "usr/share/doc/feedwater"
)

// programEntries are the program and its papers.
func (s *spec) programEntries(p program) ([]entry, error) {
	body, err := os.ReadFile(p.file)
	if err != nil {
		return nil, err
	}
	entries := append(folders(docPath, "usr/bin"), entry{name: programPath, mode: 0o755, body: body})
	for _, file := range s.docs {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: docPath + "/" + filepath.Base(file), mode: 0o644, body: body})
	}
	return entries, nil
}

// sizeOf is what an image takes: manifest, configuration and layers, compressed.
func sizeOf(image v1.Image) (int64, error) {
	n, err := image.Size()
	if err != nil {
		return 0, err
	}
	m, err := image.Manifest()
	if err != nil {
		return 0, err
	}
	n += m.Config.Size
	for _, l := range m.Layers {
		n += l.Size
	}
	return n, nil
}

// report prints the digest of what the layout holds, and what the image of each platform takes.
func report(w io.Writer, name string, index v1.ImageIndex) error {
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	m, err := index.IndexManifest()
	if err != nil {
		return err
	}
	if len(m.Manifests) == 1 {
		digest = m.Manifests[0].Digest
	}
	fmt.Fprintf(w, "%s@%s\n", name, digest)
	for _, d := range m.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			return err
		}
		n, err := sizeOf(image)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %.1f MB\n", d.Platform, float64(n)/1e6)
	}
	return nil
}

// containerdName is an image's name as Kubernetes looks for it in containerd, where it is imported under what it is called: one without a registry is
// Docker's there.
func containerdName(name string) string {
	host, _, found := strings.Cut(name, "/")
	switch {
	case !found:
		return "docker.io/library/" + name
	case strings.ContainsAny(host, ".:") || host == "localhost":
		return name
	default:
		return "docker.io/" + name
	}
}
