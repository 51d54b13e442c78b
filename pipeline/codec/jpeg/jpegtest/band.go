package jpegtest

// Band is a scan of a progressive file: of some components the coefficients First to Last, in the order of the file, their bits from Low on.
// Those from High on have been sent before, none if High is 0. Only a scan of First 0 has several components.
type Band struct{ Components, First, Last, High, Low int }

// All in Band.Components are all components; others are the number of one.
const All = -1

// Script is the list of scans that libjpeg writes for pictures of n components: the first coefficients without their last bit, the others
// without their last two, then bit by bit.
func Script(n int) (s []Band) {
	bands := []Band{{All, 0, 0, 0, 1}, {0, 1, 5, 0, 2}, {0, 6, 63, 0, 2}, {0, 1, 63, 2, 1}, {All, 0, 0, 1, 0}, {0, 1, 63, 1, 0}}
	for _, b := range bands {
		if b.Components == All {
			s = append(s, b)
			continue
		}
		for c := range n {
			b.Components = c
			s = append(s, b)
		}
	}
	return s
}

// band appends a scan of a progressive file.
func (e *encoder) band(b *Band) {
	comps := []int{b.Components}
	if b.Components == All {
		comps = nil
		for i := range e.comps {
			comps = append(comps, i)
		}
	}
	walk := func(symbol func(table, byte, uint32, int), restart func()) { e.walkBand(comps, b, symbol, restart) }
	tables := e.optimalTables(walk)
	for t, d := range tables {
		if len(d) > 16 {
			e.segment(0xc4, append([]byte{byte(t>>1<<4 | t&1)}, d...)...)
		}
	}
	e.scanHeader(comps, byte(b.First), byte(b.Last), byte(b.High<<4|b.Low))
	e.data(walk, tables)
}

// walkBand visits the symbols of a scan of a progressive file in order, by the standard's annex G.1.2.
func (e *encoder) walkBand(comps []int, b *Band, symbol func(t table, symbol byte, v uint32, n int), restart func()) {
	var last [4]int16
	w := bandWalker{Band: b, table: table(2 | min(comps[0], 1)), symbol: symbol}
	e.units(comps, func(i int, block *[64]int16) {
		switch {
		case b.First == 0 && b.High > 0:
			symbol(noTable, 0, uint32(block[0]>>b.Low&1), 1)
		case b.First == 0:
			v := block[0] >> b.Low
			n, bits := magnitude(int(v) - int(last[i]))
			last[i] = v
			symbol(table(min(i, 1)), byte(n), bits, n)
		default:
			w.block(block)
		}
	}, func() {
		w.flush()
		restart()
		last = [4]int16{}
	})
	w.flush()
}

// bandWalker visits bands of coefficients behind the first one.
type bandWalker struct {
	*Band
	table  table
	symbol func(t table, symbol byte, v uint32, n int)
	ended  int      // blocks that ended before their band did
	bits   []uint32 // of coefficients of those blocks that have been sent before
}

// flush writes the blocks that have ended.
func (w *bandWalker) flush() {
	if w.ended > 0 {
		n, _ := magnitude(w.ended)
		n--
		w.symbol(w.table, byte(n<<4), uint32(w.ended-1<<n), n)
	}
	w.ended = 0
	w.correct(&w.bits)
}

func (w *bandWalker) correct(bits *[]uint32) {
	for _, b := range *bits {
		w.symbol(noTable, 0, b, 1)
	}
	*bits = (*bits)[:0]
}

// block writes the band of a block. Coefficients that are larger than 1 have been sent before if this is a refinement.
func (w *bandWalker) block(block *[64]int16) {
	const mostEnded, mostBits = 0x7fff, 900
	var value [64]int
	end := w.First // behind the last coefficient that is new
	for k := w.First; k <= w.Last; k++ {
		value[k] = abs(int(block[k])) >> w.Low
		if value[k] == 1 || value[k] > 0 && w.High == 0 {
			end = k + 1
		}
	}
	run, bits := 0, []uint32(nil)
	for k := w.First; k <= w.Last; k++ {
		v := value[k]
		if v == 0 {
			run++
			continue
		}
		for ; run > 15 && k < end; run -= 16 {
			w.flush()
			w.symbol(w.table, 0xf0, 0, 0)
			w.correct(&bits)
		}
		if w.High > 0 && v > 1 {
			bits = append(bits, uint32(v&1))
			continue
		}
		w.flush()
		if block[k] < 0 {
			v = -v
		}
		n, raw := magnitude(v)
		w.symbol(w.table, byte(run<<4|n), raw, n)
		w.correct(&bits)
		run = 0
	}
	if run > 0 || len(bits) > 0 {
		w.ended++
		w.bits = append(w.bits, bits...)
		if w.ended == mostEnded || len(w.bits) > mostBits {
			w.flush()
		}
	}
}
