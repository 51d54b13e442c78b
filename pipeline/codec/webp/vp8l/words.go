package vp8l

// words is memory for the small pictures within one picture: taken piece by piece, and all of it free again with the next picture.
type words struct {
	free  []uint32
	all   []uint32 // the newest piece of memory
	taken int      // since reset
}

// take returns n words, of any value.
func (w *words) take(n int) []uint32 {
	w.taken += n
	if n > len(w.free) {
		w.all = make([]uint32, w.taken) // the next time it holds all that was taken now
		w.free = w.all
	}
	taken := w.free[:n:n]
	w.free = w.free[n:]
	return taken
}

// reset makes all memory free. Who has some of it must not use it any more.
func (w *words) reset() { w.free, w.taken = w.all, 0 }
