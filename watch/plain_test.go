package watch_test

import (
	"testing"

	"github.com/feedwater-io/feedwater/watch"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		`rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`: "dial tcp 127.0.0.1:1: connect: connection refused",
		"rpc error: code = NotFound desc = no root imagenet": "no root imagenet",
		"anything else": "anything else", "": "",
	} {
		if got := watch.Plain(text); got != want {
			t.Errorf("%q is told as %q", text, got)
		}
	}
}
