package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"google.golang.org/grpc"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
)

// socketSuffix ends the names of the sockets that agents answer Watch on; before it stands the process id.
const socketSuffix = ".sock"

// runtimeFolders are the places of agents' sockets, the first that works to be used.
func runtimeFolders() []string {
	folders := []string{filepath.Join(os.TempDir(), fmt.Sprintf("feedwater-%d", os.Getuid()))}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		folders = append([]string{filepath.Join(dir, "feedwater")}, folders...)
	}
	return folders
}

// ownFolders are those of runtimeFolders that are this user's alone.
func ownFolders() []string {
	return slices.DeleteFunc(runtimeFolders(), func(folder string) bool { return ownFolder(folder) != nil })
}

// ownFolder makes a folder that nobody else may enter. What is there already has to be one.
func ownFolder(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return checkOwn(path)
}

func checkOwn(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !ok || int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("%s is no folder of this user's alone (mode 0700)", path)
	}
	return nil
}

// agentSockets are the sockets of this user's agents that live. Those that dead ones left behind are removed.
func agentSockets() []string {
	var all []string
	for _, folder := range runtimeFolders() {
		if checkOwn(folder) != nil {
			continue
		}
		found, _ := filepath.Glob(filepath.Join(folder, "*"+socketSuffix)) // the pattern is a good one
		for _, path := range found {
			if isStale(path) {
				_ = os.Remove(path)
				continue
			}
			all = append(all, path)
		}
	}
	return all
}

// isStale reports whether nobody listens at a socket any more.
func isStale(path string) bool {
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// listenForWatchers opens this agent's socket; its folder and others' are left in order.
func listenForWatchers(ctx context.Context) (net.Listener, error) {
	agentSockets() // removes stale ones
	var errs []error
	for _, folder := range runtimeFolders() {
		l, err := listenInFolder(ctx, folder)
		if err == nil {
			return l, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// listenInFolder opens a socket that is called by this process's number. Where an agent listens there, as one of another container that shares the
// folder, it has a further number.
func listenInFolder(ctx context.Context, folder string) (l net.Listener, err error) {
	if err := ownFolder(folder); err != nil {
		return nil, err
	}
	name := fmt.Sprint(os.Getpid())
	for n := 1; n <= maxSameNumber; n++ {
		if l, err = new(net.ListenConfig).Listen(ctx, "unix", filepath.Join(folder, name+socketSuffix)); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
		name = fmt.Sprintf("%d-%d", os.Getpid(), n)
	}
	return l, err
}

// maxSameNumber is how many containers may share a folder and have agents of one number.
const maxSameNumber = 1000

// serveWatchers answers Watch for `feedwater top`, and nothing else. stop ends that and removes the socket. An agent that cannot be
// watched works as well.
func serveWatchers(ctx context.Context, s *watch.Source) (stop func(), err error) {
	l, err := listenForWatchers(ctx)
	if err != nil {
		return func() {}, err
	}
	over := make(chan struct{})
	g := grpc.NewServer(grpc.MaxRecvMsgSize(4<<10), grpc.MaxConcurrentStreams(8))
	pb.RegisterFeedServer(g, &watchServer{source: s, over: over})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(l)
	}()
	return func() {
		close(over)
		g.Stop() // removes the socket
		<-done
	}, nil
}

// watchServer is an agent as its watchers see it.
type watchServer struct {
	pb.UnimplementedFeedServer
	source *watch.Source
	over   chan struct{}
}

// Watch implements the service Feed.
func (w *watchServer) Watch(r *pb.WatchRequest, rpc grpc.ServerStreamingServer[pb.WatchResponse]) error {
	return w.source.Serve(rpc.Context(), w.over, r, rpc.Send)
}
