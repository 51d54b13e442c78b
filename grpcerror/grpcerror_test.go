package grpcerror_test

import (
	"testing"

	"github.com/feedwater-io/feedwater/grpcerror"
)

func TestCause(t *testing.T) {
	for text, want := range map[string]string{
		`rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`: "connection refused",
		"rpc error: code = NotFound desc = no root imagenet":                                           "no root imagenet",
		"rpc error: code = Unavailable desc = list: dial tcp 127.0.0.1:1: connect: connection refused": "list: dial tcp 127.0.0.1:1: connect: connection refused",
		"anything else": "anything else", "": "", `"`: "",
		`"nodes:7070x" is no address`:                                                                 `"nodes:7070x" is no address`,
		`rpc error: code = Unknown desc = no root "photos"`:                                           `no root "photos"`,
		`connection error: desc = "transport: Error while dialing: dial tcp: address \"a\": no port"`: `dial tcp: address "a": no port`,
		`connection error: desc = "no \"a\""`:                                                         `no "a"`,
	} {
		if got := grpcerror.Cause(text); got != want {
			t.Errorf("%q is told as %q", text, got)
		}
	}
}
