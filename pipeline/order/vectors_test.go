package order

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/vectors.json; this breaks every run that resumes")

const vectorsFile = "testdata/vectors.json"

// vectors is what testdata/vectors.json holds: the contract in numbers, for any other implementation too.
type vectors struct {
	Comment      []string            `json:"comment"`
	Permutations []permutationVector `json:"permutations"`
	Draws        []drawVector        `json:"draws"`
	Epochs       []epochVector       `json:"epochs"`
	Blocks       []permutationVector `json:"blocks"`
}

type permutationVector struct {
	Samples uint64   `json:"samples"`
	Seed    uint64   `json:"seed"`
	Epoch   uint32   `json:"epoch"`
	Size    uint64   `json:"size,omitempty"` // of blocks
	First   []uint32 `json:"first"`          // the samples at positions 0, 1, …
	Last    uint32   `json:"last"`           // and at the last one
}

type drawVector struct {
	Seed    uint64    `json:"seed"`
	Path    string    `json:"path"`
	Key     Key       `json:"key"`
	Epoch   uint32    `json:"epoch"`
	Index   uint32    `json:"index"`
	Repeat  uint32    `json:"repeat"`
	Block   uint32    `json:"block"`
	Words   [4]uint32 `json:"words"`
	Unit    float64   `json:"unit"`    // Unit(words[0])
	Uniform float64   `json:"uniform"` // Uniform(words[1], 0.08, 1)
	Below   uint32    `json:"below"`   // Below(words[2], 1000)
	Exp     float64   `json:"exp"`     // Exp(unit)
	Log     float64   `json:"log"`     // Log(uniform)
}

type epochVector struct {
	Samples uint64 `json:"samples"`
	Ranks   int    `json:"ranks"`
	Batch   int    `json:"batch"`
	Tail    Tail   `json:"tail"`
	Steps   uint64 `json:"steps"`
	Cursor  uint64 `json:"cursor"`
	Left    uint64 `json:"left"`
	// Per rank: position, count, valid, next. Empty when no step is left.
	Shares [][4]uint64 `json:"shares"`
}

func makeVectors() vectors {
	v := vectors{Comment: []string{
		"These numbers pin the contract of package order: which sample stands where, which random numbers it gets, what a rank takes.",
		"They were written by `go test -run TestVectors -update`. A change here changes the batches of every run that resumes.",
		"The Philox words are checked against the published vectors elsewhere; exp and log are given as float64.",
	}}
	for _, n := range []uint64{1, 2, 7, 1000, 1024, 1025, 50000, 1281167, MaxSamples} {
		for _, seed := range []uint64{0, 17, 1<<64 - 1} {
			v.Permutations = append(v.Permutations, permutationVectorOf(n, seed, uint32(seed%1000), 0))
			v.Blocks = append(v.Blocks, permutationVectorOf(n, seed, uint32(seed%1000), 3))
		}
	}
	for i, path := range []string{"RandomResizedCrop/0", "RandomResizedCrop/1", "RandomHorizontalFlip/0", "RandomApply/0/ColorJitter/0"} {
		for j := range uint32(3) {
			v.Draws = append(v.Draws, drawVectorOf(uint64(i)*1e12, path, Sample{j, 1<<31 + uint32(i)*77, j % 2}, j))
		}
	}
	for _, e := range []Epoch{
		{500, 3, 7, Short, 0},
		{500, 3, 7, Valid, 0},
		{500, 3, 7, Drop, 0},
		{500, 3, 7, Short, 30},
		{1, 3, 4, Short, 0},
		{5, 2, 64, Valid, 0},
		{1281167, 64, 256, Short, 0},
	} {
		for _, cursor := range []uint64{0, 483, e.end() - 1, e.end()} {
			v.Epochs = append(v.Epochs, epochVectorOf(e, cursor))
		}
	}
	return v
}

func permutationVectorOf(n, seed uint64, epoch uint32, size uint64) permutationVector {
	p := NewPermutation(n, seed, epoch)
	if size > 0 {
		p = NewBlockPermutation(n, size, seed, epoch)
	}
	v := permutationVector{Samples: n, Seed: seed, Epoch: epoch, Size: size}
	for i := range min(n, 8) {
		x, _ := p.At(i)
		v.First = append(v.First, x)
	}
	v.Last, _ = p.At(n - 1)
	return v
}

func drawVectorOf(seed uint64, path string, s Sample, block uint32) drawVector {
	k := NewKey(seed, path)
	w := k.Block(s, block)
	unit, uniform := float64(Unit(w[0])), float64(Uniform(w[1], 0.08, 1))
	return drawVector{seed, path, k, s.Epoch, s.Index, s.Repeat, block, w, unit, uniform, Below(w[2], 1000), Exp(unit), Log(uniform)}
}

func epochVectorOf(e Epoch, cursor uint64) epochVector {
	v := epochVector{e.Samples, e.Ranks, e.Batch, e.Tail, e.Steps, cursor, e.StepsLeft(cursor), [][4]uint64{}}
	for rank := range min(e.Ranks, 3) {
		if s, ok := e.Step(cursor, rank); ok {
			v.Shares = append(v.Shares, [4]uint64{s.Position, uint64(s.Count), uint64(s.Valid), s.Next})
		}
	}
	return v
}

func TestVectors(t *testing.T) {
	got, err := json.MarshalIndent(makeVectors(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(vectorsFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the numbers differ from " + vectorsFile + ": runs that resume would get other batches")
	}
}
