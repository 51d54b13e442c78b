package jpeg

import (
	"bytes"
	"errors"
	"fmt"
)

// parser reads the markers of a file and decides whether it is accepted. Two programs decide that in Pillow: its own walk
// over the header, and libjpeg. What either refuses is refused here; they agree on where segments start in every file that
// libjpeg accepts, so one walk is enough.
type parser struct {
	src    []byte
	limits Limits
	at     int
	cut    bool // a read went past the end
	frame  frame
	scans  []scan
	blocks int64 // that the scans visit, and their restarts, as Limits.ScanBlocks counts them
	most   int   // scans, as Limits.Scans counts them

	quant   [4]quantTable
	dc, ac  [4]definition
	restart int
	jfif    bool
	adobe   int    // transform of the Adobe segment, -1: none
	icc     []byte // the least of the ICC segments before the frame
}

type quantTable struct {
	set bool
	q   [64]uint16 // row by row
}

// definition is a Huffman table as the file has it: 16 counts, then the symbols. nil: not defined.
type definition []byte

// failure is a refusal at a byte of the file.
func (p *parser) failure(verdict error, format string, args ...any) error {
	return fmt.Errorf("%w at byte %d: %s", verdict, p.at, fmt.Sprintf(format, args...))
}

func (p *parser) broken(format string, args ...any) error {
	return p.failure(ErrBroken, format, args...)
}

func (p *parser) truncated() error {
	p.at = len(p.src)
	return p.failure(ErrTruncated, "the file ends here")
}

// parse reads a whole file. first takes the data of its first restart interval.
func (p *parser) parse(src []byte, l Limits, first *segment) error {
	err := p.parseHeader(src, l, first)
	more := true
	for err == nil && more {
		if more, err = p.behindScan(first); more && err == nil {
			err = p.startScan()
		}
	}
	return err
}

// release lets go of the file.
func (p *parser) release() {
	clear(p.scans)
	*p = parser{scans: p.scans[:0]}
}

// parseHeader reads a file up to the data of its first scan.
func (p *parser) parseHeader(src []byte, l Limits, first *segment) error {
	*p = parser{src: src, limits: l, at: 2, scans: p.scans[:0], adobe: -1}
	first.forget()
	if !bytes.HasPrefix(src, []byte{0xff, mSOI, 0xff}) {
		return ErrNotJPEG
	}
	more, err := p.segments(0)
	if err != nil {
		return err
	}
	if !more {
		return p.broken("no scan")
	}
	return p.startScan()
}

// startScan reads the scan header at p.at.
func (p *parser) startScan() error {
	s, err := p.scanHeader()
	if err != nil {
		return err
	}
	if err := p.useTables(&s); err != nil {
		return err
	}
	if err := p.checkWork(&s); err != nil {
		return err
	}
	p.scans = append(p.scans, s)
	return nil
}

// behindScan passes over the data of the last scan and reads the segments behind it, up to the next scan if there is more.
func (p *parser) behindScan(first *segment) (more bool, err error) {
	marker, err := p.walk(&p.scans[len(p.scans)-1], first)
	if err != nil {
		return false, err
	}
	if !p.frame.single(&p.scans[0]) {
		return p.segments(marker)
	}
	return false, p.tail(marker)
}

// pieceBytes is how much of a file Pillow hands libjpeg at once.
const pieceBytes = 64 << 10

// tail reads the segments behind the only scan. All rows are there: that the file ends without EOI is no harm, and what lies in pieces behind the
// one in which the scan ends libjpeg never gets to see.
func (p *parser) tail(marker byte) error {
	src := p.src
	defer func() { p.src = src }()
	p.src = src[:min(len(src), (p.at+pieceBytes-1)&^(pieceBytes-1))]
	more, err := p.segments(marker)
	if more {
		if _, err = p.scanHeader(); !errors.Is(err, ErrTruncated) {
			return p.broken("a second scan behind a complete one")
		}
	}
	if errors.Is(err, ErrTruncated) {
		return nil
	}
	return err
}

// sequentialBlock is what a block of a sequential scan counts as: its coefficients are read and stored, some 60 ns where it takes two bits.
const sequentialBlock = 8

// restartInterval is what a restart counts as: the marker is found and the coder starts anew, some 45 ns.
const restartInterval = 6

// checkWork adds a scan to the work the file asks for. The scans to come, up to the picture's end, are counted at the first one of a progressive
// file and at the second one of another, ahead of all that would be kept of them: by their markers, since what looks like an end in a segment
// between scans hides some until they come.
func (p *parser) checkWork(s *scan) error {
	visits, several := sequentialBlock*s.blocks(&p.frame), 1
	if p.frame.progressive {
		visits, several = s.blocks(&p.frame), 0
	}
	p.blocks += visits + restartInterval*s.restarts(&p.frame)
	n := len(p.scans) + 1
	if len(p.scans) == several {
		ahead, _, _ := bytes.Cut(p.src[p.at:], []byte{0xff, mEOI})
		n += bytes.Count(ahead, []byte{0xff, mSOS})
	}
	if p.most = max(p.most, n); n > p.limits.Scans {
		return p.failure(ErrLimit, "%d scans, at most %d are decoded", n, p.limits.Scans)
	}
	if len(p.scans) >= several && p.blocks > p.limits.ScanBlocks {
		return p.failure(ErrLimit, "%d blocks in scans so far, restarts counted as %d each, at most %d are decoded", p.blocks, restartInterval, p.limits.ScanBlocks)
	}
	return nil
}

// segments reads marker segments up to SOS, which it leaves to be read, or EOI, where it returns false. It starts with marker
// unless that is 0.
func (p *parser) segments(marker byte) (sos bool, err error) {
	for ; ; marker = 0 {
		if marker == 0 {
			if marker, p.at = findMarker(p.src, p.at); marker == 0 {
				return false, p.truncated()
			}
		}
		switch marker {
		case mSOS:
			return true, nil
		case mEOI:
			if len(p.scans) > 0 || p.frame.n > 0 {
				return false, nil
			}
			err = p.restartFile()
		default:
			err = p.segment(marker)
		}
		if err != nil {
			return false, err
		}
	}
}

// restartFile passes from a file that holds tables alone to the picture that follows it and uses them.
func (p *parser) restartFile() error {
	if p.at+2 > len(p.src) {
		return p.truncated()
	}
	if p.src[p.at] != 0xff || p.src[p.at+1] != mSOI {
		return p.broken("tables without a picture")
	}
	p.at += 2
	p.restart, p.jfif, p.adobe = 0, false, -1
	return nil
}

// segment reads a marker that is neither SOS nor EOI, and its segment.
func (p *parser) segment(m byte) error {
	switch {
	case m >= mRST0 && m <= mRST7, m == mTEM && len(p.scans) > 0:
		return nil
	case m == mSOI:
		return p.broken("a second SOI marker")
	case m < mSOF0, m == mJPG, m > mDRI && m < mAPP0, m > mAPPF && m < mCOM:
		return p.broken("marker %#x", m)
	}
	if unsupported, ok := frameKind(m); ok {
		return p.startFrame(m, unsupported)
	}
	n := p.u16() - 2
	switch {
	case p.cut:
		return p.truncated()
	case m == mDHT:
		return p.huffmanTables(n)
	case m == mDQT:
		return p.quantTables(n)
	case m == mDAC:
		return p.conditioning(n)
	case m == mDRI:
		return p.restartInterval(n)
	default:
		return p.application(m, max(n, 0))
	}
}

// u8 reads a byte, or sets cut and gives 0. Segments are read like this, byte by byte and without a look at their length,
// because libjpeg does: which of two things wrong with a segment comes first decides the verdict of some files.
func (p *parser) u8() int {
	if p.at >= len(p.src) {
		p.cut = true
		return 0
	}
	p.at++
	return int(p.src[p.at-1])
}

func (p *parser) u16() int { return p.u8()<<8 | p.u8() }
