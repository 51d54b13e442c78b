package sheet

import (
	"strings"
	"testing"
)

func TestBrokenLines(t *testing.T) {
	for text, want := range map[string]string{
		"short":                    "short",
		"RandomResizedCrop top 1":  "RandomResi|  zedCrop|  top 1",
		"one two three four":       "one two|  three|  four",
		"ten letter":               "ten letter",
		"abcdefghijklmnopqrstuvwx": "abcdefghij|  klmnopqr|  stuvwx",
	} {
		if got := strings.Join(breakText(text, 10), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
