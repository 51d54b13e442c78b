package vp8l

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// appendBits appends bits, the lowest of a byte first, to bytes.
func appendBits(to []byte, bits string) []byte {
	for i, b := range bits {
		if i%8 == 0 {
			to = append(to, 0)
		}
		to[len(to)-1] |= byte(b-'0') << (i % 8)
	}
	return to
}

// A decoder does not keep much memory of a picture within one that breaks off before its pixels.
func TestTrim(t *testing.T) {
	const (
		predicted = "1" + "00" + "000" // a transform, prediction, of parts of 4×4
		code      = "1000"             // of one symbol, 0
	)
	data := appendBits(make([]byte, headerSize), predicted+"0"+code+code+code+code+code+predicted)
	d := NewDecoder("scalar")
	if err := d.Decode(data, 400, 400, 1, true); err == nil {
		t.Fatal("a transform twice is taken")
	}
	if n := cap(d.within.all); n != 100*100 {
		t.Fatalf("the picture within took %d words", n)
	}
	if d.Trim(1 << 20); cap(d.within.all) == 0 {
		t.Error("little memory is let go")
	}
	if d.Trim(1 << 12); cap(d.within.all) != 0 {
		t.Error("much memory is kept")
	}
}

// A small picture may have many groups of codes, each with tables.
func TestCodesAreBounded(t *testing.T) {
	for _, c := range []struct {
		side int
		err  error
	}{{4 * 64, nil}, {4 * 256, ErrLimit}} {
		d := NewDecoder("scalar")
		err := d.Decode(appendBits(make([]byte, headerSize), manyGroups(c.side)), c.side, c.side, 1, true)
		if !errors.Is(err, c.err) {
			t.Errorf("%d groups: %v", c.side/4*c.side/4, err)
		}
		if n := cap(d.tables.entries); n < 1<<20 || n > 3<<23 {
			t.Errorf("%d groups: tables of %d entries", c.side/4*c.side/4, n)
		}
		if d.Trim(1 << 20); cap(d.tables.entries) != 0 || d.stream.groups != nil {
			t.Error("the tables are kept")
		}
	}
}

// manyGroups is the data of a picture of zeros, a group for each part of 4×4 pixels, at most 1<<16.
func manyGroups(side int) string {
	const (
		code  = "1000" // of one symbol, 0
		codes = code + code + code + code + code
		bytes = "0" + "0001" + "000000000000000000000000000000000" + "100" + "1" + "110" + "01111111" // 256 symbols of 8 bits
	)
	n := side / 4 * side / 4
	all := []byte("0" + "0" + "1" + "000" + "0" + bytes + bytes + code + code + code) // no transform, no cache, groups
	for i := range n {
		all = fmt.Appendf(all, "%08b%08b", i&255, i>>8)
	}
	return string(all) + strings.Repeat(codes, n) + strings.Repeat("0", 64)
}
