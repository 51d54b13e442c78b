//go:build linux

package main

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"testing"
)

// echo answers with what it is sent, behind a link.
func echo(t *testing.T) (*link, net.Conn) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "node")
	node, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	go func() {
		for {
			c, err := node.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	l, err := newLink(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	c, err := net.Dial("tcp", l.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return l, c
}

func exchange(t *testing.T, c net.Conn, sent []byte) []byte {
	t.Helper()
	go func() { _, _ = c.Write(sent) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	return got
}

// A link changes nothing but what it is told to, and what a hole holds back comes when it is over.
func TestLink(t *testing.T) {
	l, c := echo(t)
	sent := bytes.Repeat([]byte("feedwater"), 100_000)
	if !bytes.Equal(exchange(t, c, sent), sent) {
		t.Error("a good link changes bytes")
	}
	l.set(condition{FlipEvery: 10_000})
	if bytes.Equal(exchange(t, c, sent), sent) {
		t.Error("no bit was turned round")
	}
	l.set(condition{Hole: true})
	came := make(chan []byte)
	go func() { came <- exchange(t, c, sent) }()
	for range 100 { // it may not come, however long one looks
		select {
		case <-came:
			t.Fatal("something came through a hole")
		default:
		}
	}
	l.set(condition{})
	if !bytes.Equal(<-came, sent) {
		t.Error("other bytes came when the hole was gone")
	}
}
