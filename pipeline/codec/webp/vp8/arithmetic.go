package vp8

import (
	"encoding/binary"
	"math/bits"
)

// window is what an arithmetic decoder (section 7) has of its data: up to 64 bits at once.
type window struct {
	value uint64
	span  uint32 // the range less one
	bits  int    // of value, below the 8 that are in use
}

// partition is a partition of the data, and where decoding stands in it.
type partition struct {
	window
	data   []byte
	at     int
	over   bool // a bit was wanted that the data does not have
	beyond bool // the value is beyond the range, as no encoder leaves it, from the first bit on and for ever
}

// open begins with data.
func (p *partition) open(data []byte) {
	*p = partition{window: window{0, 254, -8}, data: data}
	p.window = p.load(p.window)
	p.beyond = p.value>>p.bits > uint64(p.span)
}

// load refills a window that has no bits, with zeros behind the end of the data.
func (p *partition) load(w window) window {
	if p.at+8 <= len(p.data) {
		x := binary.BigEndian.Uint64(p.data[p.at:]) >> 8
		p.at += 7
		return window{w.value<<56 | x, w.span, w.bits + 56}
	}
	if p.at < len(p.data) {
		x := p.data[p.at]
		p.at++
		return window{w.value<<8 | uint64(x), w.span, w.bits + 8}
	}
	p.over = true
	return window{w.value << 8, w.span, w.bits + 8}
}

// split divides the range in two by the probability of zero, and tells whether the bit is one. The window has bits.
// lower or upper then takes the part of the range that the bit says.
func (w window) split(probability uint8) (at uint32, one bool) {
	at = w.span * uint32(probability) >> 8
	return at, uint32(w.value>>(w.bits&63)) > at
}

// lower takes the part of the range that is a zero.
func (w window) lower(at uint32) window {
	w.span = uint32(spans[uint8(at)])
	w.bits -= int(shifts[uint8(at)])
	return w
}

// upper takes the part of the range that is a one.
func (w window) upper(at uint32) window {
	w.value -= uint64(at+1) << (w.bits & 63)
	at = w.span - at - 1
	w.span = uint32(spans[uint8(at)])
	w.bits -= int(shifts[uint8(at)])
	return w
}

// bit decodes a bit. The window has bits.
func (w window) bit(probability uint8) (window, bool) {
	at, one := w.split(probability)
	if one {
		return w.upper(at), true
	}
	return w.lower(at), false
}

// shifts is how far a range less one is shifted, so that it is 127 at least, and spans is what it is then.
var shifts, spans [256]uint8

func init() {
	for i := range shifts {
		n := bits.LeadingZeros8(uint8(min(i+1, 255)))
		shifts[i], spans[i] = uint8(n), uint8((i+1)<<n-1)
	}
}

// sign gives v or −v, each as likely as the other. The window has bits.
func (w window) sign(v int32) (window, int32) {
	split := w.span >> 1
	shift := w.bits & 63
	mask := int32(split-uint32(w.value>>shift)) >> 31 // all ones where the bit is one
	w.bits--
	w.span = (w.span + uint32(mask)) | 1
	w.value -= uint64((split+1)&uint32(mask)) << shift
	return w, (v ^ mask) - mask
}

// number decodes a bit, of a window that may have none.
func (p *partition) number(w window, probability uint8) (window, uint32) {
	if w.bits < 0 {
		w = p.load(w)
	}
	w, one := w.bit(probability)
	if one {
		return w, 1
	}
	return w, 0
}

// flag decodes a bit.
func (p *partition) flag(probability uint8) bool {
	w := p.window
	if w.bits < 0 {
		w = p.load(w)
	}
	var one bool
	p.window, one = w.bit(probability)
	return one
}

// even is the probability of bits that are as likely one as zero.
const even = 128

// unsigned decodes a number of n bits, the highest first.
func (p *partition) unsigned(n int) (v int32) {
	for range n {
		v <<= 1
		if p.flag(even) {
			v |= 1
		}
	}
	return v
}

// optional decodes a number of n bits and its sign, which may be left out: then it is 0.
func (p *partition) optional(n int) int32 {
	if !p.flag(even) {
		return 0
	}
	v := p.unsigned(n)
	if p.flag(even) {
		return -v
	}
	return v
}
