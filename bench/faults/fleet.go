//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// fleet is the nodes of one run.
type fleet struct {
	program    string
	scratch    string
	data       string
	sampleTime time.Duration // of each node's one worker
	log        func(string)
	nodes      []*node
	running    sync.WaitGroup
	filer      *filer     // that hangs; nil: none
	token      string     // of trainers; empty: they need none
	beside     []*trainer // whose data hangs
}

// start makes so many nodes and their links, and starts those that prepare has not ended.
func (f *fleet) start(ctx context.Context, count int, prepare func(*fleet) error) error {
	for i := range count {
		n := &node{fleet: f, name: fmt.Sprint("node", i), data: f.data}
		f.nodes = append(f.nodes, n)
		var err error
		if n.link, err = newLink(n.socket()); err != nil {
			return err
		}
	}
	if prepare != nil {
		if err := prepare(f); err != nil {
			return err
		}
	}
	for _, n := range f.nodes {
		if err := n.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// close ends everything and waits for it.
func (f *fleet) close() {
	for _, t := range f.beside {
		t.kill()
	}
	if f.filer != nil {
		defer f.filer.close()
		f.filer.answer()
	}
	for _, n := range f.nodes {
		_ = n.kill()
		n.link.close()
	}
	f.running.Wait()
}

// decoded is how many samples all nodes have decoded, whatever became of them.
func (f *fleet) decoded() int {
	total := 0.0
	for _, n := range f.nodes {
		n.look()
		total += n.decoded
	}
	return int(total)
}

// gone is for how long nodes did not run, as the mean of all.
func (f *fleet) gone() time.Duration {
	var sum time.Duration
	for _, n := range f.nodes {
		n.mu.Lock()
		sum += n.gone
		n.mu.Unlock()
	}
	return sum / time.Duration(len(f.nodes))
}

// addrs is what trainers are told.
func (f *fleet) addrs() string {
	all := ""
	for _, n := range f.nodes {
		all += "," + n.link.addr()
	}
	return all[1:]
}

// ownData gives a node a copy of the photographs that may be changed.
func (n *node) ownData() error {
	own := filepath.Join(n.fleet.scratch, n.name+".photos")
	if err := os.CopyFS(own, os.DirFS(n.data)); err != nil {
		return err
	}
	n.data = own
	return nil
}

// tokenFile is the file with the token that trainers show.
func (f *fleet) tokenFile() string {
	if f.token == "" {
		return ""
	}
	return filepath.Join(f.scratch, "tokens")
}

// photos are the files of a node's own copy.
func (n *node) photos() ([]string, error) { return filepath.Glob(filepath.Join(n.data, "*", "*")) }
