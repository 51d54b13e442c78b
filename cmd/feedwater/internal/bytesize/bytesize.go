// Package bytesize has flags that are sizes: 4GiB, 500MB.
package bytesize

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Size is a flag like 4GiB, 500MB or a plain number of bytes. Whether 0 means anything, and what, is the matter of whoever has it.
type Size int64

var units = []struct {
	suffix string
	factor float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// Set implements pflag.Value.
func (b *Size) Set(s string) error {
	for _, u := range units {
		number, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(v == 0 || v*u.factor >= 1 && v*u.factor < 1<<62) {
			return fmt.Errorf("%q is no size; write it like 4GiB or 500MB", s)
		}
		*b = Size(v * u.factor)
		return nil
	}
	return nil
}

// Positive is a Size of which 0 means nothing.
type Positive struct{ *Size }

// Set implements pflag.Value.
func (p Positive) Set(s string) error {
	var b Size
	if err := b.Set(s); err != nil {
		return err
	}
	if b == 0 {
		return fmt.Errorf("%q is no size above 0; write it like 4GiB or 500MB", s)
	}
	*p.Size = b
	return nil
}

// String implements pflag.Value.
func (b *Size) String() string {
	for i := 3; i >= 0; i-- {
		if u := units[i]; float64(*b) >= u.factor {
			return strconv.FormatFloat(float64(*b)/u.factor, 'g', 4, 64) + u.suffix
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type implements pflag.Value.
func (b *Size) Type() string { return "size" }

// UnmarshalYAML implements yaml.Unmarshaler.
func (b *Size) UnmarshalYAML(n *yaml.Node) error { return b.Set(n.Value) }
