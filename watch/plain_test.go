package watch_test

import (
	"testing"

	"github.com/feedwater-io/feedwater/watch"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		`rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`: "connection refused",
		"anything else": "anything else",
		`connection error: desc = "error reading server preface: EOF"`: "error reading server preface: EOF; does the node want TLS? give --tls-ca",
		`connection error: desc = "error reading server preface: http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header"`: "error reading server preface: http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header; is this the port of --http, not of --listen?",
		`connection error: desc = "transport: authentication handshake failed: write tcp 1.2.3.4:1->1.2.3.4:2: write: broken pipe"`:                                                           "authentication handshake failed: write tcp 1.2.3.4:1->1.2.3.4:2: write: broken pipe; does the node want a client certificate? give --tls-cert and --tls-key; the node's log says why it hung up",
	} {
		if got := watch.Plain(text); got != want {
			t.Errorf("%q is told as %q", text, got)
		}
	}
}
