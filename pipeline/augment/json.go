package augment

import (
	"encoding/json"
	"strings"
)

// canonical marshals numbers, strings and lists of them, which cannot fail.
func canonical(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// brief is text from outside, fit for an error message.
func brief[T ~string | ~[]byte](text T) string {
	s := string(text)
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
