package jpeg

import (
	"bytes"
	"fmt"
	"slices"
)

// progressiveMutants are copies of a progressive file with one thing wrong.
func (c *corpus) progressiveMutants(kind string, b []byte) {
	add := func(name string, x []byte) { c.add(kind+"."+name, x) }
	add("ok", b)
	var scans []span
	for _, s := range spans(b) {
		if s.marker == 0xda {
			scans = append(scans, s)
		}
	}
	for at := 0; at < len(b); at += 1 + len(b)/61 {
		add(fmt.Sprintf("until%d", at), b[:at])
		add(fmt.Sprintf("until%d-eoi", at), slices.Concat(b[:at], eoi))
	}
	for i := range scans {
		c.scanMutantsOf(add, b, scans, i)
	}
	for i := range len(scans) - 1 {
		add(fmt.Sprintf("swap%d", i), slices.Concat(b[:scans[i].start], b[scans[i+1].start:scans[i+1].end], b[scans[i].start:scans[i].end], b[scans[i+1].end:]))
	}
	for i := range 150 {
		x := bytes.Clone(b)
		for range 1 + i/20 {
			x[c.inData(scans)] ^= 1 << c.random.IntN(8)
		}
		add(fmt.Sprintf("flip%d", i), x)
	}
	for i := range 60 {
		at := c.inData(scans)
		x := bytes.Clone(b)
		for j := range min(20, len(b)-at) {
			x[at+j] = byte(c.random.Uint32())
		}
		add(fmt.Sprintf("burst%d", i), x)
		at = c.inData(scans)
		add(fmt.Sprintf("drop%d", i), cut(b, span{start: at, end: at + 1 + c.random.IntN(8)}))
		at = c.inData(scans)
		add(fmt.Sprintf("rst%d", i), insert(b, at, []byte{0xff, byte(0xd0 + i%8)}))
	}
	for i := range 6 {
		h := find(b, 0xc4, i)
		add(fmt.Sprintf("no-dht%d", i), cut(b, h))
		add(fmt.Sprintf("dht%d-over", i), overwrite(b, h.start+5, 3))
		add(fmt.Sprintf("dht%d-symbol", i), overwrite(b, h.start+21, 0xfd))
	}
	for i := range 2 {
		add(fmt.Sprintf("no-dqt%d", i), cut(b, find(b, 0xdb, i)))
		add(fmt.Sprintf("dqt%d-zero", i), overwrite(b, find(b, 0xdb, i).start+6, 0))
		add(fmt.Sprintf("dqt%d-zero-short", i), overwrite(cut(b, scans[4]), find(b, 0xdb, i).start+6, 0))
	}
	sof := find(b, 0xc2, 0).start
	for _, m := range []byte{0xc0, 0xc1, 0xc3, 0xc5, 0xca} {
		add(fmt.Sprintf("sof%x", m), overwrite(b, sof+1, m))
	}
	add("twice-the-height", overwrite(b, sof+5, 0, 150))
	add("half-the-height", overwrite(b, sof+5, 0, 30))
	add("baseline-as-progressive", overwrite(c.samples[0].data, find(c.samples[0].data, 0xc0, 0).start+1, 0xc2))
}

// scanMutantsOf are mutants of the i-th scan.
func (c *corpus) scanMutantsOf(add func(string, []byte), b []byte, scans []span, i int) {
	s := scans[i]
	data := s.start + 10
	if b[s.start+4] == 3 {
		data = s.start + 14
	}
	name := func(what string) string { return fmt.Sprintf("scan%d-%s", i, what) }
	add(name("missing"), cut(b, s))
	add(name("twice"), repeatPart(b, s))
	add(name("empty"), cut(b, span{start: data, end: s.end}))
	add(name("half"), cut(b, span{start: (data + s.end) / 2, end: s.end}))
	add(name("last"), slices.Concat(b[:s.end], eoi))
	add(name("last-half"), slices.Concat(b[:(data+s.end)/2], eoi))
	add(name("last-no-eoi"), b[:s.end])
	add(name("junk-behind"), insert(b, s.end, []byte("abc\x00\x00")))
	for what, x := range [][]byte{{0xff, 0x01}, {0xff, 0x02}, {0xff, 0xff, 0xff}, eoi, {0xff, 0xd8}, {0xff, 0xfe, 0, 4, 1, 2}, {0xff, 0xc8, 0, 2}, {0xff, 0xdc, 0, 4, 0, 75}, {0xff, 0xdd, 0, 4, 0, 2}} {
		add(name(fmt.Sprintf("behind%d", what)), insert(b, s.end, x))
		add(name(fmt.Sprintf("middle%d", what)), insert(b, (data+s.end)/2, x))
	}
	changes := map[string][]byte{ // bytes before the data, new byte
		"se0": {2, 0}, "se5": {2, 5}, "se20": {2, 20}, "se63": {2, 63}, "se64": {2, 64}, "ss1": {3, 1}, "ss9": {3, 9}, "ss0": {3, 0}, "al0": {1, 0}, "al1": {1, 1}, "al13": {1, 13}, "al14": {1, 14},
		"ah1": {1, 0x10}, "ah2": {1, 0x21}, "ah3": {1, 0x31}, "ah14": {1, 0xed}, "table3": {4, 0x33}, "table4": {4, 0x44},
	}
	for _, what := range inOrder(changes) {
		add(name(what), overwrite(b, data-int(changes[what][0]), changes[what][1]))
	}
}

// inData is a place in the data of one of the scans.
func (c *corpus) inData(scans []span) int {
	s := scans[c.random.IntN(len(scans))]
	return s.start + 14 + c.random.IntN(max(1, s.end-s.start-14))
}
