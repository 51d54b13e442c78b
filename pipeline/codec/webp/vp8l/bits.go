package vp8l

import "encoding/binary"

// bitReader reads bits, the lowest of a byte first. Behind the end of its data there are zeros; who reads them must ask over in the end.
type bitReader struct {
	data []byte
	at   int    // of data, what is not in acc
	acc  uint64 // the next bits
	bits int    // how many of acc count; those above are of data[at]
}

// open begins with data.
func (r *bitReader) open(data []byte) { *r = bitReader{data: data} }

// leastBits is what libwebp always takes data to have: the first word that it loads is filled with zeros.
const leastBits = 64

// place is of the next bit.
func (r *bitReader) place() int { return 8*r.at - r.bits }

// end is where libwebp takes data to end.
func (r *bitReader) end() int { return max(8*len(r.data), leastBits) }

// over reports whether more bits were read than there are.
func (r *bitReader) over() bool { return r.place() > r.end() }

// seek goes on at a bit.
func (r *bitReader) seek(place int) {
	r.at, r.acc, r.bits = place>>3, 0, 0
	r.refill()
	r.drop(place & 7)
}

// refill makes at least 56 bits count.
func (r *bitReader) refill() {
	if r.at+8 <= len(r.data) {
		r.acc |= binary.LittleEndian.Uint64(r.data[r.at:]) << (r.bits & 63)
		r.at += (63 - r.bits) >> 3
		r.bits |= 56
		return
	}
	r.refillSlowly()
}

func (r *bitReader) refillSlowly() {
	for r.bits < 56 {
		if r.at < len(r.data) {
			r.acc |= uint64(r.data[r.at]) << (r.bits & 63)
		}
		r.at++
		r.bits += 8
	}
}

// read reads n bits, at most 24.
func (r *bitReader) read(n int) int {
	if r.bits < n {
		r.refill()
	}
	v := int(r.acc & (1<<(n&63) - 1))
	r.drop(n)
	return v
}

// drop takes n bits, which count.
func (r *bitReader) drop(n int) {
	r.acc >>= n & 63
	r.bits -= n
}
