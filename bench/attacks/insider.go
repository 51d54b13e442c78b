//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// insider is a worker's gRPC client, which shows a token that the node takes.
type insider struct {
	conn *grpc.ClientConn
	feed pb.FeedClient

	stream  pb.Feed_FetchClient // nil: none
	next    uint64              // want
	reading sync.WaitGroup
	mu      sync.Mutex
	answers []string // of the stream, not told yet
	ended   bool
}

// client is the worker's.
func (w *worker) client() (*insider, error) {
	if w.insider != nil {
		return w.insider, nil
	}
	shown, err := config(nil)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+w.target.Addr, grpc.WithTransportCredentials(credentials.NewTLS(shown)), grpc.WithNoProxy(),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return w.dial() }),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: patience, Backoff: backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond}}))
	if err != nil {
		return nil, err
	}
	w.insider = &insider{conn: conn, feed: pb.NewFeedClient(conn)}
	return w.insider, nil
}

// as is the context of a call with the token.
func (w *worker) as() context.Context {
	return metadata.AppendToOutgoingContext(w.ctx, bearer(insiderToken)...)
}

func (i *insider) close() {
	_ = i.conn.Close()
	i.reading.Wait()
}

// answer is what the end of a call says.
func answer(err error) string {
	if code := status.Code(err); code != codes.Unavailable {
		return code.String()
	}
	return hungUp
}

// open calls Open.
func (w *worker) open(r *pb.OpenRequest) (int, []string) {
	i, err := w.client()
	if err != nil {
		return 0, []string{err.Error()}
	}
	_, err = i.feed.Open(w.as(), r)
	return 1, []string{answer(err)}
}

// wants sends some more on the worker's stream, and tells what came back meanwhile.
func wants(w *worker) (int, []string) {
	const some, batch = 200, 4
	i, err := w.client()
	if err != nil {
		return 0, []string{err.Error()}
	}
	if i.stream == nil {
		if err := i.begin(w.as()); err != nil {
			return 0, []string{answer(err)}
		}
	}
	for sent := range some {
		i.next++
		name := &pb.Name{Epoch: 1, Samples: &pb.Name_Range{Range: &pb.Range{Position: i.next * batch, Count: batch}}}
		if i.stream.Send(&pb.FetchRequest{Request: &pb.FetchRequest_Want{Want: &pb.Want{Id: i.next, Name: name}}}) != nil {
			return sent, i.told()
		}
	}
	return some, i.told()
}

// begin begins a stream and reads it until its end.
func (i *insider) begin(ctx context.Context) error {
	s, err := i.feed.Fetch(ctx)
	if err != nil {
		return err
	}
	if err := s.Send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: jobPlan, Job: "attack"}}}); err != nil && err != io.EOF { //nolint:errorlint // io.EOF: Recv says why
		return err
	}
	i.stream, i.next, i.ended = s, 0, false
	i.reading.Go(func() {
		for {
			m, err := s.Recv()
			if err != nil {
				i.note(answer(err), true)
				return
			}
			switch {
			case m.GetFailure().GetReason() == pb.Reason_REASON_BUSY:
				i.note("busy", false)
			case m.GetFailure() != nil:
				i.note(codes.Code(m.GetFailure().GetCode()).String(), false)
			case m.GetHeader() != nil:
				i.note("made", false)
			}
		}
	})
	return nil
}

func (i *insider) note(answer string, last bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answers = append(i.answers, answer)
	i.ended = i.ended || last
}

// told is what came back since it was asked last.
func (i *insider) told() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := i.answers
	i.answers = nil
	if i.ended {
		i.stream = nil
	}
	return all
}

// recorder is a connection that keeps what is written to it, and never answers.
type recorder struct {
	net.Conn
	io.Writer
}

func (r *recorder) Write(b []byte) (int, error)      { return r.Writer.Write(b) }
func (r *recorder) Read([]byte) (int, error)         { return 0, io.EOF }
func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

// hello writes the first words of a handshake.
func hello(to io.Writer) {
	if c, err := config(nil); err == nil {
		_ = tls.Client(&recorder{Writer: to}, c).Handshake() // which ends where the answer should come
	}
}
