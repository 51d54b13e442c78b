package client

// Want states what a want is.
type Want struct {
	Dst  []byte
	Step uint64
	Due  int
}

func receive() *fleet { return &fleet{} }

func (f *fleet) copyWant(w Want) Want { return Want{Dst: w.Dst, Step: w.Step, Due: w.Due} }

func bytesOf(n int) int { return (n + 7) &^ 7 }
