package watch

import (
	"strconv"
	"strings"
)

// Plain is an error for people: gRPC's words around it are left out, and the address that could not be reached, which
// stands beside it.
func Plain(text string) string {
	for _, before := range []string{"desc = ", "transport: ", "Error while dialing: ", ": connect: "} {
		if i := strings.LastIndex(text, before); i >= 0 {
			text = text[i+len(before):]
		}
	}
	return addAdvice(unquote(text))
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

// addAdvice says what to do about a connection that ends at once.
func addAdvice(text string) string {
	switch {
	case strings.Contains(text, "error reading server preface: EOF"), strings.Contains(text, "error reading server preface: read tcp"):
		return text + "; does the node want TLS? give --tls-ca"
	case strings.Contains(text, "HTTP/1.1 header"):
		return text + "; is this the port of --http, not of --listen?"
	case strings.Contains(text, "broken pipe"):
		return text + "; does the node want a client certificate? give --tls-cert and --tls-key; the node's log says why it hung up"
	}
	return text
}
