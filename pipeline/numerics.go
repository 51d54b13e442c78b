package pipeline

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/resize"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// numericsFiles are small pictures of every format, and of every kind that has code of its own; two of them are
// damaged.
//
//go:embed numerics/*
var numericsFiles embed.FS

// numericsRun is a chain of the self-test.
type numericsRun struct {
	transforms string
	reference  resize.Reference
	epochs     uint32
	masks      bool // what the chain does to masks
}

// numericsRuns between them run all pixel code: both resize passes in both orders, up and down, all filters, both
// dialects, padding, flips, colours, warps, CTAugment's effects, masks.
var numericsRuns = []numericsRun{
	{`[]`, resize.Pillow13, 1, false},
	{`[{"op": "RandomResizedCrop", "size": [30, 40], "interpolation": "bicubic"}, {"op": "RandomCrop", "size": [33, 38], "padding": 3, "pad_if_needed": true,
		"padding_mode": "reflect"}, {"op": "RandomShortestSize", "min_size": [20, 40], "interpolation": "lanczos"}]`, resize.Pillow13, 2, false},
	{`[{"op": "RandomResizedCrop", "size": [40, 30], "dialect": "tensor"}, {"op": "Resize", "size": [31, 29], "dialect": "tensor", "interpolation": "bicubic", "antialias": false},
		{"op": "RandomZoomOut", "fill": [1, 2, 3]}, {"op": "Resize", "size": [20, 50], "interpolation": "hamming"}, {"op": "ScaleJitter", "target_size": [30, 30],
		"interpolation": "nearest"}]`, resize.Pillow13, 2, false},
	{`[{"op": "RandomResizedCrop", "size": [32, 48]}, {"op": "RandomHorizontalFlip"}, {"op": "RandomVerticalFlip"}]`, resize.Pillow13, 2, false},
	{`[{"op": "RandomResizedCrop", "size": [48, 32]}]`, resize.Pillow12, 1, false},
	{`[{"op": "Resize", "size": [24]}, {"op": "CenterCrop", "size": [20, 28]}, {"op": "Resize", "size": [90, 31]}]`, resize.Pillow13, 1, false},
	{`[{"op": "CenterCrop", "size": 40}, {"op": "ColorJitter", "brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1},
		{"op": "RandomChoice", "transforms": [{"op": "RandomAutocontrast"}, {"op": "RandomEqualize"}]},
		{"op": "RandomAdjustSharpness", "sharpness_factor": 1.7}, {"op": "GaussianBlur", "kernel_size": 9}]`, resize.Pillow13, 2, false},
	{`[{"op": "CenterCrop", "size": 40}, {"op": "RandomAffine", "degrees": 30, "shear": [-9, 9, -9, 9], "interpolation": "bilinear"},
		{"op": "RandomPerspective", "p": 1, "interpolation": "bicubic"}, {"op": "RandAugment", "num_ops": 3},
		{"op": "AugMix", "mixture_width": 2}, {"op": "RandomRotation", "degrees": 180, "expand": true}]`, resize.Pillow13, 2, false},
	{`[{"op": "CenterCrop", "size": 32}, {"op": "ColorJitter", "brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1, "dialect": "tensor"},
		{"op": "RandomAdjustSharpness", "sharpness_factor": 1.7, "dialect": "tensor"}, {"op": "RandomAutocontrast", "dialect": "tensor"},
		{"op": "RandomAffine", "degrees": 30, "shear": [-9, 9, -9, 9], "interpolation": "bilinear", "dialect": "tensor"},
		{"op": "RandomPerspective", "p": 1, "fill": 9, "dialect": "tensor"}, {"op": "ElasticTransform", "sigma": [1, 2]},
		{"op": "RandomGrayscale", "dialect": "tensor"}, {"op": "RandomRotation", "degrees": 180, "expand": true, "dialect": "tensor"}]`, resize.Pillow13, 1, false},
	{`[{"op": "CenterCrop", "size": 40}, {"op": "CTAugment", "depth": 8, "probe": 0}]`, resize.Pillow13, 1, false},
	{`[{"op": "RandomResizedCrop", "size": [40, 30]}, {"op": "RandomAffine", "degrees": 30, "shear": [-9, 9, -9, 9], "fill": 1},
		{"op": "RandomPerspective", "p": 1, "fill": 2}, {"op": "ElasticTransform", "sigma": [1, 2], "fill": 3}, {"op": "RandomZoomOut", "fill": 4},
		{"op": "RandomShortestSize", "min_size": [20, 40], "interpolation": "nearest-exact"}]`, resize.Pillow13, 1, true},
}

// Exact is the numerics of every machine whose self-test finds what the build was committed with. It is the digest that
// the self-test had before builds told their revisions, which states of that time pin. The digest of a later build's
// self-test differs: of a picture more, or of a codec that was mended. Of that its revisions tell, and jobs that do not
// use it must not be split by it.
const Exact = "577cd4131bcd91a076df916525228a76"

// committedNumerics is the digest of this build's self-test; a test holds it.
const committedNumerics = "577cd4131bcd91a076df916525228a76"

// nameNumerics is the numerics of a machine by what its self-test found.
func nameNumerics(digest string) string {
	if digest == committedNumerics {
		return Exact
	}
	return digest
}

// selfTests are the self-tests of this process: what a machine computes does not change while a process runs on it, and
// a process may open many pipelines.
var selfTests = struct {
	mu  sync.Mutex
	all map[[2]string]func() (string, error) // by level and salt
}{all: map[[2]string]func() (string, error){}}

// recallNumerics is measureNumerics, run once in a process.
func recallNumerics(level, salt string) (string, error) {
	selfTests.mu.Lock()
	key := [2]string{level, salt}
	measure := selfTests.all[key]
	if measure == nil {
		measure = sync.OnceValues(func() (string, error) { return measureNumerics(level, salt) })
		selfTests.all[key] = measure
	}
	selfTests.mu.Unlock()
	return measure()
}

// measureNumerics is the self-test: it runs the kernels of the level, the draws and the orders on known input and
// digests what comes out. Machines of one build with the same digest make the same bytes. salt stages another machine.
func measureNumerics(level, salt string) (string, error) {
	h := sha256.New()
	h.Write([]byte(salt))
	measureOrder(h)
	files, err := fs.Glob(numericsFiles, "numerics/*")
	if err != nil {
		return "", err
	}
	made := make([]bytes.Buffer, len(numericsRuns))
	var runs errgroup.Group // side by side: a process cannot begin before
	for i := range numericsRuns {
		runs.Go(func() error { return numericsRuns[i].measureFiles(&made[i], files, level) })
	}
	if err := runs.Wait(); err != nil {
		return "", err
	}
	for i := range made {
		h.Write(made[i].Bytes())
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// measureFiles writes what a run makes of the files.
func (r *numericsRun) measureFiles(w io.Writer, files []string, level string) error {
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(r.transforms), &raw); err != nil {
		return err
	}
	chain, err := transform.Parse(raw)
	if err == nil && r.masks {
		chain, err = chain.ForMasks()
	}
	if err != nil {
		return err
	}
	run, err := transform.NewRunner(chain, transform.Options{Seed: 1, Reference: r.reference, Level: level})
	if err != nil {
		return err
	}
	decoder := codec.NewDecoder(level)
	for i, name := range files {
		if err := measureFile(w, decoder, run, name, uint32(i), r.epochs); err != nil {
			return fmt.Errorf("self-test, kernels %s: %s: %w", level, name, err)
		}
	}
	return nil
}

// measureFile writes what a chain makes of a file in some epochs.
func measureFile(out io.Writer, d *codec.Decoder, run *transform.Runner, name string, index, epochs uint32) error {
	text, err := numericsFiles.ReadFile(name)
	if err != nil {
		return err
	}
	file := append(make([]byte, 0, len(text)+64), text...)
	for epoch := range epochs {
		w, height, err := d.Parse(file, codec.DefaultLimits())
		if err != nil {
			return err
		}
		outW, outH, err := run.Begin(w, height, order.Sample{Epoch: epoch, Index: index})
		if err != nil {
			return err
		}
		pixels := make([]byte, 3*outW*outH)
		if err := run.Run(d, pixels, 3*outW); err != nil {
			return err
		}
		if _, err := out.Write(binary.LittleEndian.AppendUint32(nil, uint32(outW))); err != nil {
			return err
		}
		if _, err := out.Write(pixels); err != nil {
			return err
		}
	}
	return nil
}

// measureOrder digests orders and draws.
func measureOrder(h hash.Hash) {
	for _, n := range []uint64{7, 1024, 1025, 1_281_167} {
		p := order.NewPermutation(n, 3, 5)
		for position := range uint64(64) {
			index, repeat := p.At(position * (n / 7))
			h.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, index), repeat))
		}
	}
}
