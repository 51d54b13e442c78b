package client_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// lists takes so long to list the files of any folder.
func lists(took time.Duration) *servertest.Engine {
	return &servertest.Engine{ScanFiles: 4096, Scanning: func(ctx context.Context, _ string) error {
		select {
		case <-time.After(took):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// A trainer whose node lists the files first hears how far it is: in the log, in the node's state and, if it waits no
// longer, in the error.
func TestNodeThatLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("a", lists(40*time.Second), server.Options{})
		f, err := client.New(c.options("a"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		opened := make(chan error, 1)
		go func() {
			_, err := f.Open(t.Context())
			opened <- err
		}()
		time.Sleep(11 * time.Second)
		s := f.Status()[0]
		if s.State != client.Scanning || len(s.Scans) != 1 || s.Scans[0].Folder != "photos" || s.Scans[0].Files != 4096 || s.Scans[0].FilesPerSecond < 100 {
			t.Errorf("the node is %s, scans %v", s.State, s.Scans)
		}
		time.Sleep(20 * time.Second)
		if log := c.log.String(); !strings.Contains(log, "waiting for nodes") || strings.Count(log, "a: scanning: photos: 4096 files in ") < 3 {
			t.Errorf("the log does not tell of it:\n%s", log)
		}
		if err := <-opened; err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if s := f.Status()[0]; s.State != client.Ready || len(s.Scans) != 0 {
			t.Errorf("afterwards the node is %s, scans %v", s.State, s.Scans)
		}
	})
}

func TestNoTimeForTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("a", lists(time.Hour), server.Options{})
		o := c.options("a")
		o.StartTimeout = 8 * time.Second
		f, err := client.New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "a: scanning: photos: 4096 files in 7s, 5") {
			t.Errorf("error %v", err)
		}
	})
}
