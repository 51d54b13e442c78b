package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestScalerOptions(t *testing.T) {
	for _, c := range []struct {
		o    scalerOptions
		want string
	}{
		{scalerOptions{listen: "127.0.0.1:7072"}, "give --nodes"},
		{scalerOptions{listen: "127.0.0.1:7072", nodes: []string{"cpu-1"}}, `--nodes "cpu-1"`},
		{scalerOptions{listen: "127.0.0.1:7072", nodes: []string{"dns:cpu"}}, "dns:name:port"},
		{scalerOptions{listen: "127.0.0.1:7072", nodes: []string{"cpu-1:7070"}}, "another machine"},
		{scalerOptions{listen: "127.0.0.1:7072", nodes: []string{"localhost:7070, localhost:7071", " dns:cpu:7070"}}, ""},
		{scalerOptions{listen: ":7072", nodes: []string{"localhost:7070"}}, "reachable from other machines"},
		{scalerOptions{listen: ":7072", nodes: []string{"cpu-1:7070"}, reach: reachOptions{insecure: true}}, ""},
		{scalerOptions{listen: ":7072", cert: "x", nodes: []string{"localhost:7070"}}, "go together"},
		{scalerOptions{listen: ":7072", cert: "x", key: "y", nodes: []string{"cpu-1:7070"}}, "--tls-ca"},
		{scalerOptions{listen: ":7072", cert: "x", key: "y", nodes: []string{"cpu-1:7070"}, reach: reachOptions{tls: true}}, ""},
	} {
		if err := c.o.checkFlags(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

// A name is looked up, one that nobody has yet stands for no nodes, and other machines are not dialled unasked.
func TestScalerFollowsSources(t *testing.T) {
	folder, log := t.TempDir(), &strings.Builder{}
	if err := os.WriteFile(filepath.Join(folder, "cpu"), []byte("cpu-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := scalerOptions{listen: "127.0.0.1:7072", nodes: []string{"dns:localhost:7070", "file:" + folder}, log: slog.New(slog.NewTextHandler(log, nil))}
	if err := o.checkFlags(); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	running.Go(func() { o.list.Run(ctx) })
	if all, err := o.listNodes(ctx); err == nil || !strings.Contains(err.Error(), "cpu line 1") {
		t.Errorf("files without an address: %q, %v", all, err)
	}
	if err := os.WriteFile(filepath.Join(folder, "cpu"), []byte("cpu-1:x\n127.0.0.1:7070\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := o.listNodes(ctx)
	for err != nil { // until the file is read again
		time.Sleep(time.Millisecond)
		all, err = o.listNodes(ctx)
	}
	if _, err := o.listNodes(ctx); err != nil || strings.Count(log.String(), "cpu line 1") != 1 {
		t.Errorf("%v; it was said once what is wrong: %s", err, log)
	}
	all = slices.DeleteFunc(all, func(addr string) bool { return addr == "[::1]:7070" })
	if err != nil || !slices.Equal(all, []string{"127.0.0.1:7070"}) {
		t.Errorf("%q, %v", all, err)
	}
	if _, err := o.dialNode("10.0.0.1:7070"); err == nil || !strings.Contains(err.Error(), "--insecure") {
		t.Errorf("another machine: %v", err)
	}
}
