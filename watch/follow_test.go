package watch_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
)

// stops tells its state some times and then nothing, but keeps the call open.
type stops struct {
	pb.UnimplementedFeedServer
	times int
}

func (s stops) Watch(r *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	for range s.times {
		if err := stream.Send(&pb.WatchResponse{}); err != nil {
			return err
		}
		time.Sleep(r.Interval.AsDuration())
	}
	<-stream.Context().Done()
	return nil
}

// A process that tells nothing more is given up, after a time that leaves room for three answers.
func TestFollowGivesUpSilentProcesses(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{time.Second: 15 * time.Second, 20 * time.Second: time.Minute} {
		for _, times := range []int{0, 5} {
			synctest.Test(t, func(t *testing.T) {
				g, l := grpc.NewServer(grpc.WaitForHandlers(true)), bufconn.Listen(1<<16)
				pb.RegisterFeedServer(g, stops{times: times})
				go func() { _ = g.Serve(l) }()
				defer g.Stop()
				conn, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				heard, latest := 0, time.Now()
				err = watch.Follow(t.Context(), conn, interval, func(*pb.WatchResponse) { heard, latest = heard+1, time.Now() })
				var silent *watch.SilentError
				if !errors.As(err, &silent) || silent.After != want || heard != times || time.Since(latest) != want {
					t.Errorf("asked each %s, %d times told: %v after %s", interval, heard, err, time.Since(latest))
				}
			})
		}
	}
}
