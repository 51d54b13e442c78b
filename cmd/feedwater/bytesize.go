package main

import (
	"fmt"
	"strconv"
	"strings"
)

// byteSize is a flag like 4GiB, 500MB or a plain number of bytes. Whether 0 means anything, and what, is the matter of whoever has it.
type byteSize int64

var byteUnits = []struct {
	suffix string
	factor float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// Set implements pflag.Value.
func (b *byteSize) Set(s string) error {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(v == 0 || v*u.factor >= 1 && v*u.factor < 1<<62) {
			return fmt.Errorf("%q is no size; write it like 4GiB or 500MB", s)
		}
		*b = byteSize(v * u.factor)
		return nil
	}
	return nil
}

// positive is a byteSize of which 0 means nothing.
type positive struct{ *byteSize }

// Set implements pflag.Value.
func (p positive) Set(s string) error {
	var b byteSize
	if err := b.Set(s); err != nil {
		return err
	}
	if b == 0 {
		return fmt.Errorf("%q is no size above 0; write it like 4GiB or 500MB", s)
	}
	*p.byteSize = b
	return nil
}

// String implements pflag.Value.
func (b *byteSize) String() string {
	for i := 3; i >= 0; i-- {
		if u := byteUnits[i]; float64(*b) >= u.factor {
			return strconv.FormatFloat(float64(*b)/u.factor, 'g', 4, 64) + u.suffix
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type implements pflag.Value.
func (b *byteSize) Type() string { return "size" }
