// Command vectors prints what this build makes of a corpus: a line for each case, its name and a digest, and for order
// and draws.
//
//	vectors CORPUS LEVEL
//
// LEVEL is one of the kernels. The command of one revision runs the corpus of another.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/revision/internal/corpus"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "vectors CORPUS LEVEL")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

func run(dir, level string, out io.Writer) error {
	text, err := os.ReadFile(filepath.Join(dir, corpus.CasesFile))
	if err != nil {
		return err
	}
	var cases []corpus.Case
	if err := json.Unmarshal(text, &cases); err != nil {
		return err
	}
	h := sha256.New()
	writeOrder(h)
	print(out, "order", h)
	h = sha256.New()
	writeDraws(h)
	print(out, "draws", h)
	p, err := pipeline.Open(pipeline.Options{Kernels: level})
	if err != nil {
		return err
	}
	defer p.Close()
	for i := range cases {
		h := sha256.New()
		if err := runCase(h, p, dir, &cases[i]); err != nil {
			return fmt.Errorf("%s: %w", cases[i].Name, err)
		}
		print(out, cases[i].Name, h)
	}
	return nil
}

func print(out io.Writer, name string, h hash.Hash) {
	fmt.Fprintf(out, "%s\t%s\n", name, hex.EncodeToString(h.Sum(nil)[:12]))
}

// runCase digests all samples of a case, in as many epochs as it wants.
func runCase(h hash.Hash, p *pipeline.Pipeline, dir string, c *corpus.Case) error {
	times := 1
	if c.Index {
		index, err := os.MkdirTemp("", "vectors")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(index) }()
		if p, err = pipeline.Open(pipeline.Options{Kernels: p.Kernels(), Index: &pipeline.IndexOptions{Dir: index}}); err != nil {
			return err
		}
		defer p.Close()
		times = 2
	}
	j, closeAll, err := prepare(p, dir, c)
	if err != nil {
		return err
	}
	defer closeAll()
	for range times {
		for epoch := range uint32(c.Epochs) {
			if err := runEpoch(h, j, epoch); err != nil {
				return err
			}
		}
	}
	return nil
}

func prepare(p *pipeline.Pipeline, dir string, c *corpus.Case) (*pipeline.Job, func(), error) {
	plan, err := pipeline.ParsePlan(c.Plan)
	if err != nil {
		return nil, nil, err
	}
	open := func(folder string) (*dataset.Snapshot, error) {
		return dataset.Open(context.Background(), filepath.Join(dir, folder), dataset.Options{CacheDir: filepath.Join(dir, "cache")})
	}
	s, err := open(c.Folder)
	if err != nil {
		return nil, nil, err
	}
	if c.Masks == "" {
		j, err := p.Prepare(plan, s)
		return j, func() { s.Close() }, err
	}
	masks, err := open(c.Masks)
	if err != nil {
		return nil, nil, err
	}
	j, err := p.PrepareMasked(plan, s, masks)
	return j, func() { s.Close(); masks.Close() }, err
}

// runEpoch digests an epoch, in batches.
func runEpoch(h hash.Hash, j *pipeline.Job, epoch uint32) error {
	const samples = 256
	for at := uint64(0); at < j.Samples(); at += samples {
		n := int(min(samples, j.Samples()-at))
		_, bytes := j.Layout(n)
		done := make(chan pipeline.Result, 1)
		room := make([]byte, bytes)
		w := &pipeline.Want{
			Name: batch.Name{Epoch: epoch, Position: at, Count: n}, Request: batch.Request{Dst: room, Grow: func(n int) []byte { room = make([]byte, n); return room }}, Done: func(r pipeline.Result) { done <- r },
		}
		if err := j.Submit(w); err != nil {
			return err
		}
		r := <-done
		if r.Err != nil { // where all that could stand in for a sample are damaged
			fmt.Fprintln(h, "failed")
			continue
		}
		_, _ = h.Write(room[:r.Bytes])
		for _, s := range r.Sizes {
			_ = binary.Write(h, binary.LittleEndian, []uint32{uint32(s[0]), uint32(s[1])})
		}
		for i := range r.Errors {
			e := &r.Errors[i]
			fmt.Fprintln(h, e.Offset, e.Index, e.Key, e.Op, e.Substitute, e.Substituted)
		}
	}
	return nil
}
