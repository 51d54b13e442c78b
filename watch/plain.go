package watch

import (
	"strings"

	"github.com/feedwater-io/feedwater/grpcerror"
)

// Plain is an error for people at a command line: its cause, and what to do about a connection that ends at once.
func Plain(text string) string {
	text = grpcerror.Cause(text)
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
