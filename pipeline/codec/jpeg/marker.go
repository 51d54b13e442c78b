package jpeg

import "bytes"

// Marker codes.
const (
	mTEM  = 0x01
	mSOF0 = 0xc0 // baseline
	mSOF1 = 0xc1 // extended sequential
	mSOF2 = 0xc2 // progressive
	mDHT  = 0xc4
	mJPG  = 0xc8
	mDAC  = 0xcc
	mRST0 = 0xd0
	mRST7 = 0xd7
	mSOI  = 0xd8
	mEOI  = 0xd9
	mSOS  = 0xda
	mDQT  = 0xdb
	mDRI  = 0xdd
	mAPP0 = 0xe0
	mAPP2 = 0xe2
	mAPPD = 0xed
	mAPPE = 0xee
	mAPPF = 0xef
	mCOM  = 0xfe
)

// findMarker looks for the next marker in src[at:]. It returns the code and the place behind it, or code 0 if there is none.
// Bytes before it, fill bytes and stuffed zeros are passed over.
func findMarker(src []byte, at int) (code byte, behind int) {
	for {
		i := bytes.IndexByte(src[at:], 0xff)
		if i < 0 {
			return 0, len(src)
		}
		at += i
		for at < len(src) && src[at] == 0xff {
			at++
		}
		if at == len(src) {
			return 0, at
		}
		at++
		if src[at-1] != 0 {
			return src[at-1], at
		}
	}
}

// cursor walks the restart intervals of a scan the way libjpeg does, also where markers are missing or wrong.
type cursor struct {
	src    []byte
	at     int  // behind the last marker, or where the data starts
	marker byte // a marker that has been found and not used yet, or 0
	number byte // of the restart marker that is due next
}

// find moves to the next marker and reports whether there is one.
func (c *cursor) find() bool {
	c.marker, c.at = findMarker(c.src, c.at)
	return c.marker != 0
}

// resume moves to the data of the next interval. It gives false where the marker at hand belongs further on, so that the
// next interval is empty, and where there is no marker at all.
func (c *cursor) resume() bool {
	due := c.number
	c.number = (due + 1) & 7
	for c.marker != 0 || c.find() {
		ahead := (c.marker - mRST0 - due) & 7
		switch {
		case c.marker < mSOF0: // no marker that means anything: look further
			c.marker = 0
		case c.marker < mRST0 || c.marker > mRST7: // end of the scan
			return false
		case ahead == 1 || ahead == 2: // the due one was lost
			return false
		case ahead >= 6: // an old one
			c.marker = 0
		default: // the due one, or so far off that its number must be wrong
			c.marker = 0
			return true
		}
	}
	return false
}
