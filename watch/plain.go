package watch

import "strings"

// Plain is an error for people: gRPC's words around it are left out.
func Plain(text string) string {
	for _, before := range []string{"desc = ", "transport: ", "Error while dialing: "} {
		if i := strings.LastIndex(text, before); i >= 0 {
			text = text[i+len(before):]
		}
	}
	return strings.Trim(text, `"`)
}
