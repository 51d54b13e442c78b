package vp8l

import (
	"encoding/base64"
	"errors"
	"testing"
)

// TestDataThatEndWithinTheLastSymbol: of transparency that lacks a few bits, libwebp (Pillow 13) takes what follows from its last word, whose bits decide
// whether a copy's distance leads out of the picture. These came of 7,152 files with bytes cut off or changed at the end of their transparency.
func TestDataThatEndWithinTheLastSymbol(t *testing.T) {
	for name, c := range map[string]struct {
		w, h  int
		taken bool
		data  string
	}{
		"53 bytes of 24×31": {
			24, 31, false,
			"D3CYyIgI4SiybakRwHCkYQUnWEEKUjrDMrs8ERH9z8aLk6Wr4kFbFW6/htB/MhpGHRW+VA==",
		},
		"54 bytes of 24×31": {
			24, 31, false,
			"D3CYyIgI4SiybakRwHCkYQUnWEEKUjrDMrs8ERH9z8aLk6Wr4kFbFW69htF/MxpGFRW+VG0=",
		},
		"129 bytes of 5×59": {
			5, 59, false,
			"J6GwbSM1ph7fM0ZEWJjFJAJRje8PStLh06I6TYeBKsFhZNtKg8aIJ8QF2/6LxDuI6L/Ctm2QMcMbJQAAwDND1orztMbrb7jmDsD0P47vxfxB1aj7j4cLdjc0" +
				"/YJlh4IadREN33dpYZ8j99rgcBpsSz9YIwRg+MqtoxtYtRAVKL4=",
		},
		"209 bytes of 34×52": {
			34, 52, true,
			"J6CobRs4yaDtNip73hERlY8Ag1p7qsxHAFAD6DQAOgL4oH8omP/QBBH9Z+Q2kiIfahgWXuF9SiLMRGW/UdgiSNdn1y4zil3tt1Q0dj8hZ4bqm97P6ju0WYmv" +
				"6Edh7stsq3FpdzbC7o1JInp2tZ/IZ1NFHEjUAnOP410Hx/Bi42xMSZCAx4cSQdnXFTSUg4e20DX4WqgtIkTZJKYkwSZaj4Ao80LFTzb+8xtSa6N6Zo3pB31l" +
				"rJbO+pXj55+sswwVgZ3ZakdL5O2+MZk8dtf9dQ==",
		},
		"237 bytes of 25×38": {
			25, 38, true,
			"f6CgjSQ1dvTM6IQiIvKRqLQxHn/daRjArW1btfLdXSN94Xdp4XegZGRvEBF9ydGX4dbCbQB3dyiAFl4JyD3nblqI6L8it20bAoY7TusVP2L/JaoZZnSvZXH9" +
				"iAmiZrdl0R1i8kAae0T2HF/T20SbMqObJPgS1dT++odf5kymLnPspP7cm7cwfI2lF4Y6Ydg/PmJ3KGALNzOjYH3DMglk2FxBGfK8WNWzMWjtJWqDUjYPas2j" +
				"9r4Eu2iE4NxwwphWsiImdwzq2TUvk36Jrhtm1Kvus8v9c47Abrl704hFNv4xI/INfkyNpa47YFw=",
		},
		"239 bytes of 25×38": {
			25, 38, true,
			"f6CgjSQ1dvTM6IQiIvKRqLQxHn/daRjArW1btfLdXSN94Xdp4XegZGRvEBF9ydGX4dbCbQB3dyiAFl4JyD3nblqI6L8it20bAoY7TusVP2L/JaoZZnSvZXH9" +
				"iAmiZrdl0R1i8kAae0T2HF/T20SbMqObJPgS1dT++odf5kymLnPspP7cm7cwfI2lF4Y6Ydg/PmJ3KGALNzOjYH3DMglk2FxBGfK8WNWzMWjtJWqDUjYPas2j" +
				"9r4Eu2iE4NxwwphWsiImdwzq2TUvk36Jrhtm1Kvus8v9c47Abrl704hFNv4xI/INfEyNpa474Fx3AA==",
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := base64.StdEncoding.DecodeString(c.data)
			if err != nil {
				t.Fatal(err)
			}
			if err := NewDecoder("").CheckAlpha(data, c.w, c.h); (err == nil) != c.taken || err != nil && !errors.Is(err, ErrData) {
				t.Errorf("%v, want taken %v", err, c.taken)
			}
		})
	}
}
