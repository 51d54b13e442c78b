package node

import (
	"strings"
	"testing"
)

// TestDescribeCall: what to do about a connection is said of the one to the node alone.
func TestDescribeCall(t *testing.T) {
	const refused = "dial tcp 127.0.0.1:1: connect: connection refused"
	if said := describeCall(`connection error: desc = "transport: Error while dialing: ` + refused + `"`); !strings.Contains(said, "nothing listens there. A node listens on") {
		t.Errorf("the node refuses connections: %s", said)
	}
	for _, message := range []string{"open data set s3://a/b: " + refused, "open data set s3://a/b: dial tcp 10.0.0.1:1: i/o timeout"} {
		if said := describeCall(message); said != message {
			t.Errorf("of %q is said %q", message, said)
		}
	}
}
