// Package grpcerror says what an error of gRPC is about, for people: without the words that gRPC puts around the cause.
// It imports nothing of ours, and nothing of gRPC.
package grpcerror

import (
	"strconv"
	"strings"
)

// Cause is the text of an error without gRPC's words around it, and without the address that could not be reached, which
// stands beside it wherever one is told. A text that has none of these is returned as it is.
func Cause(text string) string {
	const dial = "Error while dialing: "
	dialed := strings.Contains(text, dial)
	for _, before := range []string{"desc = ", "transport: ", dial} {
		text = cutBefore(text, before)
	}
	if dialed {
		text = cutBefore(text, ": connect: ")
	}
	return unquote(text)
}

// cutBefore is what stands behind the last of some words, all of a text without them.
func cutBefore(text, words string) string {
	if i := strings.LastIndex(text, words); i >= 0 {
		return text[i+len(words):]
	}
	return text
}

// unquote leaves out quotes around a text, or the closing one where the opening one was left out before.
func unquote(text string) string {
	if inner, err := strconv.Unquote(text); err == nil && text[0] == '"' {
		return inner
	}
	if inner, ok := strings.CutSuffix(text, `"`); ok && strings.Count(inner, `"`)%2 == 0 {
		return strings.ReplaceAll(inner, `\"`, `"`)
	}
	return text
}
