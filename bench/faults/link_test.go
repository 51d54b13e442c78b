//go:build linux

package main

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// echo answers with what it is sent, behind a link.
func echo(t *testing.T, segments bool) (*link, net.Conn) {
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
	if segments {
		l.mayLose()
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
	l, c := echo(t, false)
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

// A link that loses segments has TCP send them again, and delivers the same bytes.
func TestLoss(t *testing.T) {
	l, c := echo(t, true)
	sent := bytes.Repeat([]byte("feedwater"), 60_000)
	for _, share := range []float64{0, 0.02} {
		l.set(condition{Loss: share})
		if !bytes.Equal(exchange(t, c, sent), sent) {
			t.Error("other bytes came")
		}
	}
	if l.resent(t) == 0 {
		t.Error("no segment was sent again")
	}
}

// resent is how many segments the ends of a link's hops sent again.
func (l *link) resent(t *testing.T) (segments int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h := range l.hops {
		for _, e := range []end{h.near, h.far} {
			if err := e.on(func(fd int) error {
				info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
				segments += int(info.Total_retrans)
				return err
			}); err != nil {
				t.Error(err)
			}
		}
	}
	return segments
}
