package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"google.golang.org/grpc/credentials/insecure"
)

// TestScattered reads frames of all sizes as gRPC does, and keeps what it got for a while, as gRPC does too.
func TestScattered(t *testing.T) {
	for name, size := range map[string]func(*rand.Rand) int{
		"full":   func(*rand.Rand) int { return frameBytes },
		"pieces": func(r *rand.Rand) int { return []int{frameBytes, frameBytes, frameBytes, 45, 0}[r.IntN(5)] },
		"any":    func(r *rand.Rand) int { return r.IntN(frameBytes + 1) },
		"small":  func(r *rand.Rand) int { return r.IntN(30) },
	} {
		t.Run(name, func(t *testing.T) {
			f := &frames{}
			server, c := connected(t, f)
			r := rand.New(rand.NewPCG(1, 2))
			var sent [][]byte
			for total := 0; total < 20<<20 && len(sent) < 20000; total += len(sent[len(sent)-1]) {
				b := make([]byte, size(r))
				for i := range b {
					b[i] = byte(r.Uint32())
				}
				sent = append(sent, b)
			}
			go sendFrames(server, sent, r)
			checkFrames(t, c, f, sent)
		})
	}
}

// sendFrames writes frames in lumps that respect no border, and closes.
func sendFrames(c net.Conn, sent [][]byte, r *rand.Rand) {
	var all []byte
	for _, b := range sent {
		all = append(binary.BigEndian.AppendUint32(append(all, "head:"...), uint32(len(b))), b...)
	}
	for len(all) > 0 {
		n := min(1+r.IntN(300<<10), len(all))
		if _, err := c.Write(all[:n]); err != nil {
			return
		}
		all = all[n:]
	}
	_ = c.Close()
}

func checkFrames(t *testing.T, c net.Conn, f *frames, sent [][]byte) {
	t.Helper()
	type held struct {
		got  *[]byte
		want []byte
	}
	var kept []held
	for i, want := range sent {
		var head [headOfFrame]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			t.Fatal(err)
		}
		if n := binary.BigEndian.Uint32(head[5:]); string(head[:5]) != "head:" || int(n) != len(want) {
			t.Fatalf("frame %d: head %q", i, head)
		}
		b := f.Get(len(want))
		if _, err := io.ReadFull(c, *b); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, held{b, want})
		if len(kept) == 50 || i == len(sent)-1 {
			for _, k := range kept {
				if !bytes.Equal(*k.got, k.want) {
					t.Fatalf("other bytes among the frames before %d", i)
				}
				f.Put(k.got)
			}
			kept = kept[:0]
		}
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("%d bytes and %v after the end", n, err)
	}
}

// connected returns the ends of a connection; the second one went through the handshake.
func connected(t *testing.T, f *frames) (server, c net.Conn) {
	t.Helper()
	s, _ := newScatterCredentials(insecure.NewCredentials(), f)
	return handshaken(t, s.(*scatterCredentials))
}

func handshaken(t *testing.T, s *scatterCredentials) (server, c net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	plain, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	if c, _, err = s.ClientHandshake(t.Context(), "", plain); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = server.Close()
	})
	return server, c
}

// TestScatteredInPlace holds what it is for: a full frame that was read ahead lies in the buffer that gRPC gets, before
// gRPC reads it.
func TestScatteredInPlace(t *testing.T) {
	f := &frames{}
	server, c := connected(t, f)
	full := bytes.Repeat([]byte("feedwater frame!"), frameBytes/16)
	if _, err := server.Write(append([]byte("head:----"), full...)); err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	var head [headOfFrame]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatal(err)
	}
	b := f.Get(frameBytes)
	if !bytes.HasPrefix(*b, full[:16]) {
		t.Error("the payload lies elsewhere")
	}
	if _, err := io.ReadFull(c, *b); err != nil || !bytes.Equal(*b, full) {
		t.Errorf("read %v", err)
	}
}

// TestScatteredOnce: of two connections that share frames, one has the next frame laid out.
func TestScatteredOnce(t *testing.T) {
	s, _ := newScatterCredentials(insecure.NewCredentials(), &frames{})
	_, a := handshaken(t, s.(*scatterCredentials))
	_, b := handshaken(t, s.(*scatterCredentials))
	if _, ok := a.(*scatterConn); !ok {
		t.Errorf("the first is a %T", a)
	}
	if _, ok := b.(*bufferedConn); !ok {
		t.Errorf("the second is a %T", b)
	}
}
