package batchmem

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// writes is a connection that notes what is written at once.
type writes struct {
	net.Conn
	all [][]byte
}

func (w *writes) Write(p []byte) (int, error) {
	w.all = append(w.all, bytes.Clone(p))
	return len(p), nil
}

// sockets are two ends of a TCP connection.
func sockets(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	near, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return near, far
}

// leased is a batch of noise in a slot.
func leased(t *testing.T, q *Quota, size int, seed byte) (data []byte, free func()) {
	t.Helper()
	s := q.TakeSlot(size, 0)
	if s == nil {
		t.Fatal("no slot")
	}
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(s.Bytes[:size])
	b := s.LeaseBytes(size)
	return b.ReadOnlyData(), b.Free
}

// What is written arrives as it was and in its order, whether it lies in slots or not, also what nothing comes after.
func TestGatheredArrives(t *testing.T) {
	m := &Memory{Limit: 64 << 20}
	q := NewQuota(m, m.Limit)
	near, far := sockets(t)
	g := newWritevConn(near, m)
	r := rand.New(rand.NewPCG(1, 2))
	var sent bytes.Buffer
	write := func(p []byte) {
		sent.Write(p)
		if n, err := g.Write(p); n != len(p) || err != nil {
			t.Errorf("%d of %d bytes: %v", n, len(p), err)
		}
	}
	total, got := make(chan int, 1), make(chan []byte)
	go func() { got <- readTotal(far, total) }()
	for i := range 40 {
		data, free := leased(t, q, 1+r.IntN(1<<20), byte(i))
		for len(data) > 0 {
			own := make([]byte, r.IntN(100))
			if r.IntN(20) == 0 {
				own = make([]byte, 3*copiedBytes)
			}
			for i := range own {
				own[i] = byte(r.IntN(256))
			}
			write(own)
			clear(own) // it is the caller's again
			n := min(1+r.IntN(16<<10), len(data))
			write(data[:n])
			data = data[n:]
		}
		free()
	}
	last := []byte("the end")
	total <- sent.Len() + len(last)
	write(last)
	if !bytes.Equal(<-got, sent.Bytes()) {
		t.Error("other bytes arrived than were written")
	}
	if n := q.CountLent(); n != 0 {
		t.Errorf("%d bytes are still lent", n)
	}
}

// readTotal reads as much as total says before the last of it is written.
func readTotal(c net.Conn, total <-chan int) []byte {
	var b bytes.Buffer
	buf := make([]byte, 64<<10)
	for want := -1; b.Len() != want; {
		n, err := c.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			break
		}
		select {
		case want = <-total:
		default:
		}
	}
	return b.Bytes()
}

// What gRPC is done with stays lent until it is written, and is lent no longer when it cannot be written.
func TestGatheredIsHeld(t *testing.T) {
	m := &Memory{Limit: 1 << 20}
	q := NewQuota(m, m.Limit)
	for _, broken := range []bool{false, true} {
		near, far := sockets(t)
		g := newWritevConn(near, m)
		data, free := leased(t, q, 200_000, 1)
		g.writing.Lock() // nothing is written on the way
		g.addLeased(data[:1000], g.holdLease(data[:1000]))
		g.addLeased(data[1000:2000], g.holdLease(data[1000:2000]))
		free()
		if q.CountLent() == 0 {
			t.Fatal("a slot is free while some of it is to be written")
		}
		if broken {
			_ = near.Close()
		}
		g.writing.Unlock()
		g.flushParts()
		if n := q.CountLent(); n != 0 {
			t.Errorf("broken %v: %d bytes are lent for ever", broken, n)
		}
		if _, err := g.Write([]byte("more")); broken == (err == nil) {
			t.Errorf("broken %v: the next write says %v", broken, err)
		}
		if !broken {
			got := make([]byte, 2000)
			if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, data[:2000]) {
				t.Errorf("other bytes, or none: %v", err)
			}
		}
	}
}

// A slot that gRPC is done with counts against the budget while a connection has yet to write some of it, whatever the
// garbage collector finds, and is lent again afterwards.
func TestGatheredIsCounted(t *testing.T) {
	m := &Memory{Limit: 1 << 20}
	q := NewQuota(m, m.Limit)
	near, _ := sockets(t)
	g := newWritevConn(near, m)
	g.writing.Lock()
	func() {
		data, free := leased(t, q, 200_000, 1)
		g.addLeased(data[:1000], g.holdLease(data[:1000]))
		free()
	}()
	for range 2 {
		collected(t)
	}
	if used, lent := m.CountBytes(); used == 0 || lent == 0 {
		t.Errorf("%d bytes are used and %d lent while some are to be written", used, lent)
	}
	g.writing.Unlock()
	g.flushParts()
	if _, lent := m.CountBytes(); lent != 0 || len(m.free) != 1 {
		t.Errorf("%d bytes are lent, %d slots free", lent, len(m.free))
	}
}

// collected returns when the garbage collector has found and told what nobody refers to.
func collected(t *testing.T) {
	t.Helper()
	told := make(chan struct{})
	runtime.AddCleanup(new([64]byte), func(told chan struct{}) { close(told) }, told)
	for {
		runtime.GC()
		select {
		case <-told:
			return
		case <-t.Context().Done():
			t.Fatal("nothing is collected")
		default:
		}
	}
}

// A part of any lease is found, and nothing beside it.
func TestHold(t *testing.T) {
	m := &Memory{Limit: 64 << 20}
	q := NewQuota(m, m.Limit)
	var all [][]byte
	var free []func()
	for i := range 100 {
		data, end := leased(t, q, 10_000+i*100, byte(i))
		all, free = append(all, data), append(free, end)
	}
	check := func(data []byte, lent bool) {
		n := len(data)
		for _, p := range [][]byte{data[:1], data[n-1:], data[n/3 : n/2], data} {
			l := m.holdLease(p)
			if found := l != nil; found != lent || found && &l.data[0] != &data[0] {
				t.Fatalf("of a lease of %d bytes, lent %v, part of %d: found %v", n, lent, len(p), found)
			}
			if l != nil {
				l.release()
			}
		}
		if p := data[:n+1]; m.holdLease(p) != nil {
			t.Fatal("more than a lease is found")
		}
	}
	for i, data := range all {
		check(data, true)
		if i%2 == 0 {
			free[i]()
		}
	}
	for i, data := range all {
		check(data, i%2 != 0)
	}
	for i := 1; i < len(free); i += 2 {
		free[i]()
	}
	if len(m.leases) != 0 || m.holdLease(make([]byte, 100)) != nil {
		t.Errorf("%d leases are left", len(m.leases))
	}
}

// A connection that is closed holds nothing any more, though nobody writes or flushes, and gRPC may keep it for a
// while.
func TestGatheredIsClosed(t *testing.T) {
	m := &Memory{Limit: 1 << 20}
	q := NewQuota(m, m.Limit)
	near, _ := sockets(t)
	g := newWritevConn(near, m)
	data, free := leased(t, q, 200_000, 1)
	g.writing.Lock()
	g.addLeased(data[:1000], g.holdLease(data[:1000]))
	g.writing.Unlock()
	free()
	if q.CountLent() == 0 {
		t.Fatal("a slot is free while some of it is to be written")
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if n := q.CountLent(); n != 0 || g.copied != nil {
		t.Errorf("%d bytes are lent for ever, and a buffer of %d is kept", n, cap(g.copied))
	}
	if _, err := g.Write(data[1000:2000]); !errors.Is(err, net.ErrClosed) || q.CountLent() != 0 {
		t.Errorf("the next write says %v, and %d bytes are lent", err, q.CountLent())
	}
}

// Whoever hangs up may say why before, if the peer listens.
func TestGatheredLastWords(t *testing.T) {
	for _, full := range []bool{false, true} {
		near, far := sockets(t)
		if full {
			fill(t, near)
		}
		g := newWritevConn(near, &Memory{Limit: 1 << 20})
		g.writing.Lock()
		g.addCopied([]byte("goodbye"))
		g.writing.Unlock()
		_ = g.Close() // returns, whoever listens
		if said, err := io.ReadAll(far); !full && (err != nil || string(said) != "goodbye") {
			t.Errorf("%q, %v", said, err)
		}
	}
}

// fill writes until the peer's machine takes no more.
func fill(t *testing.T, c net.Conn) {
	t.Helper()
	for some := make([]byte, 1<<20); ; {
		_ = c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := c.Write(some); errors.Is(err, os.ErrDeadlineExceeded) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	_ = c.SetWriteDeadline(time.Time{})
}

// A batch of which nothing more comes does not wait for company, and what does not lie in slots is written at once too,
// but little of it at a time.
func TestGatheredAtOnce(t *testing.T) {
	m := &Memory{Limit: 8 << 20}
	q := NewQuota(m, m.Limit)
	w := &writes{}
	g := &writevConn{Conn: w, memory: m, writing: make(chanMutex, 1), run: -1, copied: make([]byte, 0, copiedBytes)}
	data, free := leased(t, q, 100_000, 1)
	defer free()
	g.writing.Lock()
	defer g.writing.Unlock()
	g.addCopied([]byte("head"))
	g.addLeased(data[:1000], g.holdLease(data[:1000]))
	g.addCopied([]byte("head"))
	if len(w.all) != 0 {
		t.Fatal("written before it was enough")
	}
	g.addLeased(data[1000:], g.holdLease(data[1000:]))
	if got := bytes.Join(w.all, nil); len(got) != 100_008 {
		t.Errorf("%d bytes are written when the batch is whole", len(got))
	}
	w.all = nil
	for range 10_000 {
		g.addCopied([]byte("a head of a frame"))
	}
	g.writeParts()
	if n := len(w.all); n != (10_000*17+copiedBytes-1)/copiedBytes {
		t.Errorf("%d writes of what was copied", n)
	}
}

// Some of a batch, or of a frame, has nobody write it soon, for more is to come; if it does not, the clock has it
// written.
func TestGatheredWaits(t *testing.T) {
	m := &Memory{Limit: 8 << 20}
	q := NewQuota(m, m.Limit)
	data, free := leased(t, q, 100_000, 1)
	defer free()
	near, far := sockets(t)
	g := newWritevConn(near, m)
	head := []byte{0, 0x10, 0, 0, 0, 0, 0, 0, 1} // of 4096 bytes
	for _, parts := range [][][]byte{{head, data[:1096], data[1096:4096]}, {head, make([]byte, 96)}} {
		n := 0
		for _, p := range parts {
			_, _ = g.Write(p)
			n += len(p)
		}
		g.writing.Lock()
		if g.flushing {
			t.Errorf("%d parts: written soon, whatever follows", len(parts))
		}
		g.writing.Unlock()
		if _, err := io.ReadFull(far, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
}

// What is no batch needs nothing else to be written.
func TestGatheredAlone(t *testing.T) {
	near, far := sockets(t)
	g := newWritevConn(near, &Memory{Limit: 1 << 20})
	for range 100 {
		ping := []byte("a ping is 17 byte")
		_, _ = g.Write(ping)
		if _, err := io.ReadFull(far, make([]byte, len(ping))); err != nil {
			t.Fatal(err)
		}
	}
}
