package jpegtest

// definition is a Huffman table as a file has it: 16 counts, then the symbols.
type definition []byte

type code struct {
	bits uint32
	n    int
}

type codebook [256]code

func (d definition) codes() (book codebook) {
	next, k := uint32(0), 16
	for l, count := range d[:16] {
		for range count {
			book[d[k]] = code{next, l + 1}
			next++
			k++
		}
		next <<= 1
	}
	return book
}

// frequencies counts symbols.
type frequencies [256]int

// optimal makes the best table with codes of at most 16 bits by the procedure of the standard's annex K.2: merge the two
// rarest trees until one is left; a symbol that does not occur takes the code of all ones.
func (f *frequencies) optimal() definition {
	const reserved = 256
	var (
		count  [257]int
		length [257]int
		other  [257]int // the next symbol of the same tree, -1: none
	)
	copy(count[:], f[:])
	count[reserved] = 1
	for i := range other {
		other[i] = -1
	}
	for {
		a := rarest(&count, -1)
		b := rarest(&count, a)
		if b < 0 {
			break
		}
		count[a] += count[b]
		count[b] = 0
		end := grow(&length, &other, a)
		other[end] = b
		grow(&length, &other, b)
	}
	return listed(&length, limited(&length))
}

// rarest is the symbol with the least count that is not 0, the highest of several, but not except; -1: none.
func rarest(count *[257]int, except int) int {
	least := -1
	for i, c := range count {
		if c > 0 && i != except && (least < 0 || c <= count[least]) {
			least = i
		}
	}
	return least
}

// grow makes all codes of a tree one bit longer and returns its last symbol.
func grow(length, other *[257]int, s int) (last int) {
	for ; s >= 0; s = other[s] {
		length[s]++
		last = s
	}
	return last
}

// limited counts the codes of each length after those over 16 bits have been shortened, without the reserved one.
func limited(length *[257]int) (counts [64]int) {
	for _, l := range length {
		if l > 0 {
			counts[l]++
		}
	}
	for i := 63; i > 16; i-- {
		for counts[i] > 0 {
			j := i - 2
			for counts[j] == 0 {
				j--
			}
			counts[i] -= 2
			counts[i-1]++
			counts[j+1] += 2
			counts[j]--
		}
	}
	for i := 16; i > 0; i-- {
		if counts[i] > 0 {
			counts[i]--
			break
		}
	}
	return counts
}

// listed writes the table: symbols with shorter codes first.
func listed(length *[257]int, counts [64]int) definition {
	d := make(definition, 16, 16+256)
	for i := range d {
		d[i] = byte(counts[i+1])
	}
	for l := 1; l < 64; l++ {
		for s := range 256 {
			if length[s] == l {
				d = append(d, byte(s))
			}
		}
	}
	return d
}
