// Package client sends and receives.
package client

const fieldAlign = 64

type fleet struct{ cost Average }

func (f *fleet) alignUp(n int) int { return (n + fieldAlign - 1) &^ (fieldAlign - 1) }

func (f *fleet) spend(x float64) { f.cost.Add(x, 0.5) }

// Send is in a circle with b.go.
func Send(bool) { receive() }
