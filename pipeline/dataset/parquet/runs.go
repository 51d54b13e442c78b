package parquet

import "encoding/binary"

// runs reads numbers of so many bits, as Parquet's hybrid of runs and packed bits has them.
type runs struct {
	b     []byte
	bits  int
	left  uint64 // of the run at hand
	value uint32
	// packed is what is left of a run of packed bits, and at the first bit of it that was not read.
	packed []byte
	at     uint64
}

// next returns a number; false behind the last one, or where the bytes are damaged.
func (r *runs) next() (uint32, bool) {
	if r.left == 0 && !r.begin() {
		return 0, false
	}
	r.left--
	if r.packed == nil {
		return r.value, true
	}
	v := uint32(0)
	for i := range r.bits {
		bit := r.packed[r.at>>3] >> (r.at & 7) & 1
		v |= uint32(bit) << i
		r.at++
	}
	return v, true
}

// begin begins the next run.
func (r *runs) begin() bool {
	head, n := binary.Uvarint(r.b)
	if n <= 0 || head>>1 == 0 || head>>1 > 1<<31 {
		return false
	}
	r.b = r.b[n:]
	if head&1 == 0 {
		size := (r.bits + 7) / 8
		if size > len(r.b) {
			return false
		}
		r.value, r.packed, r.left = 0, nil, head>>1
		for i := range size {
			r.value |= uint32(r.b[i]) << (8 * i)
		}
		r.b = r.b[size:]
		return true
	}
	size := head >> 1 * uint64(r.bits)
	count := 8 * (head >> 1)
	if size > uint64(len(r.b)) { // writers may leave off the end of the last group
		size = uint64(len(r.b))
		count = 8 * size / uint64(max(r.bits, 1))
	}
	if count == 0 {
		return false
	}
	r.packed, r.at, r.left = r.b[:size:size], 0, count
	r.b = r.b[size:]
	return true
}
