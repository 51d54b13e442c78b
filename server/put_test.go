package server_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	nodes "github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
	"github.com/feedwater-io/feedwater/server/tables"
)

// tablesIn keeps tables in a folder.
func tablesIn(dir string, limit int64) *tables.Store {
	return tables.New(func() (string, error) { return dir, nil }, limit)
}

// put puts pieces of a text of so many bytes.
func (n *node) put(table string, bytes int, pieces ...string) error {
	call, err := pb.NewFeedClient(n.conn()).Put(n.t.Context())
	if err != nil {
		return err
	}
	request := &pb.PutRequest{Table: table, Bytes: uint64(bytes)}
	for _, p := range pieces {
		request.Data = []byte(p)
		if call.Send(request) != nil { // the answer says why
			break
		}
		request = &pb.PutRequest{}
	}
	_, err = call.CloseAndRecv()
	return err
}

// TestPut: a plan that names a table is refused until the node was given it, and what is wrong with what is given is
// said.
func TestPut(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{Tables: tablesIn(t.TempDir(), 100)})
	sum := sha256.Sum256([]byte("some lines"))
	table := hex.EncodeToString(sum[:])
	request := &pb.OpenRequest{Protocol: pb.Protocol, Plan: fmt.Sprintf(`{"source": {"root": "photos", "table": %q}}`, table)}
	_, err := pb.NewFeedClient(n.conn()).Open(t.Context(), request)
	var missing *nodes.TableError
	if err = nodes.FromStatus(err); !errors.As(err, &missing) || missing.Table != table {
		t.Fatalf("%v, want a TableError", err)
	}
	for name, c := range map[string]struct {
		table  string
		bytes  int
		pieces []string
		code   codes.Code
	}{
		"other":     {table, 10, []string{"some", " limes"}, codes.InvalidArgument},
		"cut":       {table, 10, []string{"some"}, codes.InvalidArgument},
		"too long":  {table, 10, []string{"some", " lines", "!"}, codes.InvalidArgument},
		"too large": {table, 101, []string{"some"}, codes.InvalidArgument},
		"no name":   {"../x", 4, []string{"some"}, codes.InvalidArgument},
		"a bomb":    {table, 1 << 62, []string{"some"}, codes.InvalidArgument},
	} {
		if err := n.put(c.table, c.bytes, c.pieces...); status.Code(err) != c.code {
			t.Errorf("%s: %v, want %v", name, err, c.code)
		}
	}
	if err := n.put(table, 10, "some", " ", "lines"); err != nil {
		t.Fatal(err)
	}
	if _, err := pb.NewFeedClient(n.conn()).Open(t.Context(), request); err != nil {
		t.Error(err)
	}
}

// TestPutThatStands: a trainer that sends no more is not waited for, and leaves no room taken.
func TestPutThatStands(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{Tables: tablesIn(t.TempDir(), 10), StallTimeout: 50 * time.Millisecond})
	sum := sha256.Sum256([]byte("some lines"))
	table := hex.EncodeToString(sum[:])
	call, err := pb.NewFeedClient(n.conn()).Put(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := call.Send(&pb.PutRequest{Table: table, Bytes: 10, Data: []byte("some")}); err != nil {
		t.Fatal(err)
	}
	if err := call.RecvMsg(&pb.PutResponse{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v, want %v", err, codes.DeadlineExceeded)
	}
	until(t, "what it began keeps its room", func() bool { return n.put(table, 10, "some lines") == nil })
}

func TestANodeThatTakesNoTables(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{})
	if err := n.put("ab", 1, "x"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("%v, want %v", err, codes.InvalidArgument)
	}
}
