package node

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// putBytes is how much of a table is sent at once.
const putBytes = 256 << 10

// Put implements Putter, on a connection of its own: that of an Open that failed is closed.
func (r *remote) Put(ctx context.Context, table string, bytes int64, text io.Reader) error {
	conn, err := grpc.NewClient(r.target, r.dialOptions()...)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the call is over
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a call that was not sent whole
	call, err := pb.NewFeedClient(conn).Put(ctx)
	if err != nil {
		return err
	}
	request := &pb.PutRequest{Table: table, Bytes: uint64(bytes)}
	buffer := make([]byte, putBytes)
	for sent := int64(0); sent < bytes; {
		n, err := io.ReadFull(text, buffer[:min(putBytes, bytes-sent)])
		if err != nil {
			return err
		}
		request.Data = buffer[:n]
		if err := call.Send(request); errors.Is(err, io.EOF) { // the node has ended the call, and says why
			break
		} else if err != nil {
			return err
		}
		sent += int64(n)
		request = &pb.PutRequest{}
	}
	_, err = call.CloseAndRecv()
	return err
}
