package client_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline/dataset/buckettest"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// reading is a node's engine on a store with certain versions.
func reading(store, versions string) *servertest.Engine {
	return &servertest.Engine{Store: store, Versions: versions}
}

// A job begins on no two nodes that read other versions of one bucket's objects. Nodes of different stores, and of files, are not compared.
func TestJobThatBeginsOnOtherVersions(t *testing.T) {
	for name, c := range map[string]struct {
		nodes map[string]*servertest.Engine
		fails bool
	}{
		"two versions of one bucket":   {map[string]*servertest.Engine{"a": reading("s", "1"), "b": reading("s", "2")}, true},
		"a third one":                  {map[string]*servertest.Engine{"a": reading("s", "1"), "b": reading("", ""), "c": reading("s", "2")}, true},
		"one version":                  {map[string]*servertest.Engine{"a": reading("s", "1"), "b": reading("s", "1")}, false},
		"two buckets, and files":       {map[string]*servertest.Engine{"a": reading("s", "1"), "b": reading("r", "2"), "c": reading("", "")}, false},
		"files on all, not in buckets": {map[string]*servertest.Engine{"a": reading("", ""), "b": reading("", "")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCluster(t)
				var addrs []string
				for addr, e := range c.nodes {
					cluster.start(addr, e, server.Options{})
					addrs = append(addrs, addr)
				}
				f, err := client.New(cluster.options(addrs...))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				_, err = f.Open(t.Context())
				if !c.fails {
					if err != nil {
						t.Fatal(err)
					}
					cluster.await(f, len(addrs))
					return
				}
				var data *node.DataError
				if !errors.As(err, &data) || !strings.Contains(err.Error(), "has other versions of objects") || !strings.Contains(err.Error(), "Start again") {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// While a job runs a node that reads other versions of its bucket takes no part, and the others go on; one of another bucket does.
func TestNodeOfOtherVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("a", reading("s", "1"), server.Options{})
		f := c.open(c.options("a", "b", "c"))
		c.start("b", reading("s", "2"), server.Options{})
		c.start("c", reading("r", "2"), server.Options{})
		c.await(f, 2)
		expect(t, f, client.Ready, "a c")
		for _, s := range f.Status() {
			if s.Addr == "b" && (s.State != client.LeftOut || !strings.Contains(s.Err.Error(), "than a has in the same bucket")) {
				t.Errorf("%s is %s: %v", s.Addr, s.State, s.Err)
			}
		}
		mustMake(t, f, 3)
		if _, got := f.Pins(); len(got) != 2 || got["s"] != "1" || got["r"] != "2" {
			t.Errorf("stores %v", got)
		}
		f.Close()
	})
}

// Nodes of two stores with other versions go on, since copies have such, and a line says that it may be one store by two
// names; where versions are equal, in one of the stores that are known, there is none.
func TestOneStoreByTwoNames(t *testing.T) {
	const told = "if it is one by two names"
	for name, c := range map[string]struct {
		state        map[string]string
		b            *servertest.Engine
		node, beside string
	}{
		"replaced since":        {nil, reading("r", "2"), "b", "a"},
		"as it was":             {nil, reading("r", "1"), "", ""},
		"as it was in a state":  {map[string]string{"q": "2"}, reading("r", "2"), "a", `"the job's state"`},
		"files":                 {nil, reading("", ""), "", ""},
		"the same store":        {nil, reading("s", "1"), "", ""},
		"other than in a state": {map[string]string{"s": "1", "q": "3"}, reading("r", "2"), "b", `"the job's state"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCluster(t)
				cluster.start("a", reading("s", "1"), server.Options{})
				o := cluster.options("a", "b")
				o.Stores = c.state
				f := cluster.open(o)
				defer f.Close()
				cluster.start("b", c.b, server.Options{})
				cluster.await(f, 2)
				log := cluster.log.String()
				if n := strings.Count(log, told); n != min(1, len(c.node)) || c.node != "" && !strings.Contains(log, "node="+c.node+" other="+c.beside) {
					t.Errorf("%d lines: %s", n, log)
				}
			})
		})
	}
}

// A replay is of the versions that the job began with: a node that has others by now answers none.
func TestReplayOfOtherVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		e := reading("s", "1")
		c.start("a", e, server.Options{})
		f := c.open(c.options("a"))
		defer f.Close()
		request := &pb.ReplayRequest{Name: &pb.Name{Samples: &pb.Name_Range{Range: &pb.Range{Count: 1}}}}
		if _, err := f.Replay(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		e.ChangeVersions("2")
		var data *node.DataError
		if _, err := f.Replay(t.Context(), request); !errors.As(err, &data) || !strings.Contains(err.Error(), "versions of objects") {
			t.Errorf("error %v", err)
		}
	})
}

// What a job pins is told when it is more than what is known.
func TestMoreStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("a", reading("s", "1"), server.Options{})
		f := c.open(c.options("a", "b"))
		defer f.Close()
		if got := f.MoreStores(1); got != nil {
			t.Errorf("%v are more than one", got)
		}
		c.start("b", reading("r", "2"), server.Options{})
		c.await(f, 2)
		if got := f.MoreStores(1); len(got) != 2 || got["s"] != "1" || got["r"] != "2" {
			t.Errorf("stores %v", got)
		}
	})
}

// A job that goes on takes no node that reads other versions than its state tells, and says what to do.
func TestStateOfOtherVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("old", reading("s", "1"), server.Options{})
		c.start("new", reading("s", "2"), server.Options{})
		c.start("files", reading("", ""), server.Options{})
		before := loaderOf(t, c, "old")
		if _, err := before.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		state := before.State()
		before.Close()
		for addr, fails := range map[string]bool{"old": false, "new": true, "files": false} {
			l := loaderOf(t, c, addr)
			err := l.Restore(state)
			if err == nil {
				_, err = l.Open(t.Context())
			}
			var data *node.DataError
			if fails != (err != nil) || fails && (!errors.As(err, &data) || !strings.Contains(err.Error(), "Put the old ones back")) {
				t.Errorf("%s: %v", addr, err)
			}
			l.Close()
		}
		state.Stores = nil
		l := loaderOf(t, c, "new")
		if err := l.Restore(state); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Open(t.Context()); err != nil {
			t.Errorf("a state without versions: %v", err)
		}
		l.Close()
	})
}

// loaderOf is a Loader of one node.
func loaderOf(t *testing.T, c *cluster, addr string) *loader.Loader {
	t.Helper()
	return newLoader(t, loader.Options{Options: c.options(addr), Batch: 4})
}

// Real nodes, of which one reads a folder and one a bucket with the same files, serve one job; what it pins of the bucket keeps that from going on after an object was replaced.
func TestBucketOfOtherVersions(t *testing.T) {
	root := mixedFolder(t, 8, 255)
	t.Setenv("AWS_ACCESS_KEY_ID", buckettest.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", buckettest.Secret)
	bucket := buckettest.New()
	defer bucket.Close()
	files, err := filepath.Glob(root + "/a/*")
	if err != nil || len(files) != 8 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bucket.Put("p/a/"+filepath.Base(file), data)
	}
	c := newCluster(t)
	c.startReal("a", root)
	c.startReal("b", bucket.Place("p"))
	f := c.open(c.realOptions(jpegs, "a", "b"))
	_, stores := f.Pins()
	if len(stores) != 1 {
		t.Fatalf("stores %v", stores)
	}
	f.Close()
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	bucket.Put("p/a/"+filepath.Base(files[0]), data)
	o := c.realOptions(jpegs, "b")
	o.Stores = stores
	g, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var wrong *node.DataError
	if _, err := g.Open(t.Context()); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "strict=False") {
		t.Errorf("the bucket has another object of the same size: %v", err)
	}
}
