package main

import (
	"fmt"
	"io"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// writeOrder writes orders of many sizes and the steps of many epochs.
func writeOrder(w io.Writer) {
	for _, n := range []uint64{1, 2, 7, 100, 1023, 1024, 1025, 4097, 65536, 1_281_167, 1 << 31, order.MaxSamples} {
		for seed := range uint64(5) {
			for _, p := range []*order.Permutation{order.NewPermutation(n, seed*0x9e3779b97f4a7c15, uint32(seed)), order.Identity(n)} {
				for at := range uint64(200) {
					index, repeat := p.At(at * max(1, n/150))
					fmt.Fprintln(w, index, repeat, p.Position(index))
				}
			}
		}
	}
	for i := range uint64(3000) {
		e := order.Epoch{Samples: 1 + i*i%977, Ranks: 1 + int(i%7), Batch: 1 + int(i*31%90), Steps: i % 4 * (i % 11)}
		e.Tail = []order.Tail{"", order.Short, order.Valid, order.Drop}[i/4%4]
		fmt.Fprintln(w, e.Check() == nil, e.StepCount(), e.StepsLeft(i%500))
		for rank := range e.Ranks {
			share, more := e.Step(i%97*uint64(rank), rank)
			fmt.Fprintln(w, share, more)
		}
	}
}

// writeDraws writes random words and what is made of them.
func writeDraws(w io.Writer) {
	for i := range uint32(20_000) {
		k := order.NewKey(uint64(i)*0x9e3779b97f4a7c15, fmt.Sprintf("Op%d/%d", i%50, i%3))
		x := k.Block(order.Sample{Epoch: i % 9, Index: i * 2654435761, Repeat: i % 4}, i%6)
		u := float64(float64(x[1])/(1<<33)) + 1e-9 // rounded twice on every machine
		fmt.Fprintln(w, x, order.Unit(x[0]), order.Below(x[1], 1+i%1000), order.Uniform(x[2], -float32(i%7), float32(i%90)))
		fmt.Fprintln(w, order.Exp(-40*u), order.Log(u), order.Fused(order.Unit(x[0]), float32(u), math.Pi))
	}
}
