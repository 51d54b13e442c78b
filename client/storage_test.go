package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/local"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
)

// nodeErrorOf waits until a node says what is wrong with it to whoever watches it.
func nodeErrorOf(t *testing.T, c *cluster, addr, want string) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return c.connect(ctx, addr) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := pb.NewFeedClient(conn).Watch(ctx, &pb.WatchRequest{})
	for said := ""; ; {
		if err != nil {
			t.Fatalf("the node said %q: %v", said, err)
		}
		var r *pb.WatchResponse
		if r, err = w.Recv(); err == nil && len(r.Nodes) > 0 {
			if said = r.Nodes[0].Error; strings.Contains(said, want) {
				return
			}
		}
	}
}

// A bucket that gives nothing any more in a running job, since the credentials have expired or since it does not answer, is named with the object by
// the error of the job, the node's log and the node's state, whether the node is this process or another one.
func TestBucketThatGivesNothingAnyMore(t *testing.T) {
	for name, c := range map[string]struct {
		want  string
		fault func(w http.ResponseWriter, r *http.Request)
	}{
		"expired": {"access denied (403 ExpiredToken)", func(w http.ResponseWriter, _ *http.Request) {
			buckettest.Refuse(w, http.StatusForbidden, "ExpiredToken")
		}},
		"no answer": {".jpg: no answer for ", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	} {
		for _, local := range []bool{false, true} {
			where := "/node"
			if local {
				where = "/here"
			}
			t.Run(name+where, func(t *testing.T) { checkBucketGone(t, c.want, c.fault, local) })
		}
	}
}

func checkBucketGone(t *testing.T, want string, fault func(http.ResponseWriter, *http.Request), here bool) {
	s, c, log := buckettest.OfFolder(t, folder(t)), newCluster(t), &logBook{}
	o := client.Options{Timeout: 5 * time.Second}
	if here {
		pipelines := local.New(local.Options{Lists: dataset.Options{CacheDir: t.TempDir()}})
		t.Cleanup(pipelines.Close)
		own, err := pipelines.Node(2, "")
		if err != nil {
			t.Fatal(err)
		}
		o.Local, o.Plan = own, strings.Replace(crops, `"root": "photos"`, `"path": "`+s.Place("p")+`"`, 1)
	} else {
		p, err := pipeline.Open(pipeline.Options{Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		c.serve("a", server.Options{
			Engine: server.NewEngine(p, dataset.Options{CacheDir: t.TempDir()}), Roots: map[string]string{"photos": s.Place("p")},
			Log: slog.New(slog.NewTextHandler(log, nil)),
		}, p.Close)
		o.Nodes, o.Plan, o.Dialing = []string{"a"}, crops, node.DialOptions{Connect: c.connect}
	}
	f := c.open(o)
	if r := ask(f, rangeOf(0, 0, 8), 1<<20); r.Err != nil {
		t.Fatal(r.Err)
	}
	stop := make(chan struct{})
	t.Cleanup(sync.OnceFunc(func() { close(stop) }))
	s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		select {
		case <-stop:
		default:
			fault(w, r)
		}
		return true
	})
	said := make(chan error, 1)
	go func() { said <- ask(f, rangeOf(0, 8, 8), 1<<20).Err }()
	if !here {
		nodeErrorOf(t, c, "a", want)
	}
	if err := <-said; !strings.Contains(fmt.Sprint(err), want) || !here && !errors.As(err, new(*client.StallError)) {
		t.Errorf("%v, want an error with %q", err, want)
	}
	if !here && !strings.Contains(log.String(), want) {
		t.Errorf("the node's log has no %q:\n%s", want, log)
	}
}
