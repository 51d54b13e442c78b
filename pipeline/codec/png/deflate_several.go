package png

// several has the literals of a code, and pairs of them, by the bits they have, to join those that fit into the bits of a table's first part. Where it
// is nil it does nothing.
type several struct {
	singleEnds, pairEnds ends
	singles              [256]piece
	pairs                [1 << (literalRoot - 1)]piece // those behind which another literal fits
	shortest             int                           // code of a literal
}

// piece is one or two literals: their code in reverse, and what they add to the entry of a literal in front of them.
type piece struct {
	code uint32
	tail entry
}

// ends is where the pieces of so many bits end.
type ends [literalRoot + 1]int

// of is the pieces of n bits, 1 at least.
func (e *ends) of(pieces []piece, n int) []piece { return pieces[e[n-1]:e[n]] }

// tail is what literals add to the entry of a literal in front of them.
func (e entry) tail() entry { return e&0xff | e&^0xff<<8 }

// head is the entry of a literal by its tail.
func (e entry) head() entry { return e&0xff | e>>8&^0xff }

func (s *several) reset() {
	if s != nil {
		s.singleEnds, s.pairEnds, s.shortest = ends{}, ends{}, 0
	}
}

// add adds an entry with a code of n bits if it is a literal. join was called with n-1 before.
func (s *several) add(code uint32, n int, e entry) {
	if s == nil || !e.isLiteral() {
		return
	}
	if s.shortest == 0 {
		s.shortest = n
	}
	s.singles[s.singleEnds[n]] = piece{code, e.tail()}
	s.singleEnds[n]++
}

// join puts the pairs and triples of n bits into a table, and goes on to n+1.
func (s *several) join(entries []entry, n int) {
	if s == nil {
		return
	}
	table := (*[1 << literalRoot]entry)(entries)
	for first := 1; first < n; first++ {
		singles, pairs := s.singleEnds.of(s.singles[:], n-first), s.pairEnds.of(s.pairs[:], n-first)
		for _, a := range s.singleEnds.of(s.singles[:], first) {
			put(table, a, first, singles)
			put(table, a, first, pairs)
			if n+s.shortest <= literalRoot {
				s.keep(a, first, singles, n)
			}
		}
	}
	if n < literalRoot {
		s.singleEnds[n+1], s.pairEnds[n+1] = s.singleEnds[n], s.pairEnds[n]
	}
}

// put puts literal a, of n bits, with each piece behind it into a table.
func put(table *[1 << literalRoot]entry, a piece, n int, behind []piece) {
	head := a.tail.head()
	for _, b := range behind {
		table[(a.code|b.code<<(n&31))%(1<<literalRoot)] = head + b.tail
	}
}

// keep keeps the pairs of literal a, of first bits, and each literal behind it, of n bits in all.
func (s *several) keep(a piece, first int, behind []piece, n int) {
	at := s.pairEnds[n]
	for i, b := range behind {
		s.pairs[at+i] = piece{a.code | b.code<<(first&31), (a.tail.head() + b.tail).tail()}
	}
	s.pairEnds[n] = at + len(behind)
}
