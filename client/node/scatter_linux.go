package node

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
)

const (
	headOfFrame = 9  // what comes before the payload of an HTTP/2 frame
	framesAhead = 16 // that one read can bring
)

// scatterCredentials are plaintext credentials whose connections read as scatterConn does. They serve one
// grpc.ClientConn, the one that receives into frames; should it connect again, that connection reads plainly, for two
// would contend for the next frame.
type scatterCredentials struct {
	credentials.TransportCredentials
	frames *frames
	used   atomic.Bool
}

// newScatterCredentials makes such credentials, and the size of the read buffer that gRPC is to have besides: none.
func newScatterCredentials(plain credentials.TransportCredentials, f *frames) (c credentials.TransportCredentials, readBuffer int) {
	return &scatterCredentials{TransportCredentials: plain, frames: f}, 0
}

// ClientHandshake implements credentials.TransportCredentials.
func (s *scatterCredentials) ClientHandshake(ctx context.Context, authority string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, info, err := s.TransportCredentials.ClientHandshake(ctx, authority, c)
	if err != nil {
		return nil, nil, err
	}
	if raw := rawOf(c); raw != nil && !s.used.Swap(true) {
		return newScatterConn(c, raw, s.frames), info, nil
	}
	return &bufferedConn{c, bufio.NewReaderSize(c, readBuffer)}, info, nil
}

// rawOf returns what lies below a socket. Other connections, which may wrap one, have nil.
func rawOf(c net.Conn) syscall.RawConn {
	var raw syscall.RawConn
	var err error
	switch c := c.(type) {
	case *net.TCPConn:
		raw, err = c.SyscallConn()
	case *net.UnixConn:
		raw, err = c.SyscallConn()
	}
	if err != nil {
		return nil
	}
	return raw
}

// bufferedConn is a connection that reads ahead.
type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

// Read implements net.Conn.
func (b *bufferedConn) Read(p []byte) (int, error) { return b.reader.Read(p) }

// scatterConn is a connection that lays out what it reads as full data frames: heads here, payloads in the very buffers
// that gRPC gets for them from frames, so that they need not be copied. It looks into nothing: where a frame was
// smaller, what follows lies elsewhere than gRPC wants it, and is copied as from any buffer, until the next read begins
// with a head again. One goroutine reads.
type scatterConn struct {
	net.Conn
	raw    syscall.RawConn
	frames *frames

	heads    [framesAhead][headOfFrame]byte
	payloads [framesAhead]*[]byte
	offered  int // the payload that frames hands out next; -1: none

	layout [2 * framesAhead]part
	ahead  []part // of the layout: what was read and not served yet
	off    int    // in the first of them

	into  [][]byte
	readv func(fd uintptr) bool
	count int
	err   error
}

// part is memory for some of what comes. payload is its number, -1 for heads.
type part struct {
	bytes   []byte
	payload int
}

func newScatterConn(c net.Conn, raw syscall.RawConn, f *frames) *scatterConn {
	s := &scatterConn{Conn: c, raw: raw, frames: f, offered: -1}
	s.readv = func(fd uintptr) bool {
		for {
			if s.count, s.err = unix.Readv(int(fd), s.into); !errors.Is(s.err, unix.EINTR) {
				return !errors.Is(s.err, unix.EAGAIN)
			}
		}
	}
	return s
}

// Read implements net.Conn.
func (s *scatterConn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	s.withdrawPayload()
	if len(s.ahead) > 0 {
		n = s.readAhead(p)
	} else {
		n, err = s.fillAhead(p)
	}
	s.offerPayload()
	return n, err
}

// readAhead gives what was read before. Where p is the memory that it lies in, nothing moves.
func (s *scatterConn) readAhead(p []byte) int {
	from := s.ahead[0].bytes[s.off:]
	n := min(len(p), len(from))
	if &p[0] != &from[0] {
		copy(p, from)
	}
	if s.off += n; n == len(from) {
		s.ahead, s.off = s.ahead[1:], 0
	}
	return n
}

// fillAhead reads into p, and ahead of it. First it lets those run who take what was read before, while that is in the
// cache.
func (s *scatterConn) fillAhead(p []byte) (int, error) {
	runtime.Gosched()
	parts := s.layOutParts(p)
	s.into = append(s.into[:0], p)
	for _, a := range parts {
		s.into = append(s.into, a.bytes)
	}
	if err := s.raw.Read(s.readv); err != nil {
		return 0, err
	}
	if s.err != nil {
		return 0, os.NewSyscallError("readv", s.err)
	}
	if s.count == 0 {
		return 0, io.EOF
	}
	n := min(s.count, len(p))
	s.ahead = cutParts(parts, s.count-n)
	return n, nil
}

// layOutParts says where that goes which comes behind p, which is a head or ends a frame.
func (s *scatterConn) layOutParts(p []byte) []part {
	parts := s.layout[:0]
	for i := range framesAhead {
		if s.payloads[i] == nil {
			s.payloads[i] = s.frames.takeSpare()
		}
		if i > 0 || len(p) != headOfFrame {
			parts = append(parts, part{s.heads[i][:], -1})
		}
		parts = append(parts, part{*s.payloads[i], i})
	}
	return parts
}

// cutParts cuts parts to n bytes.
func cutParts(parts []part, n int) []part {
	for i := range parts {
		if n == 0 {
			return parts[:i]
		}
		p := &parts[i]
		p.bytes = p.bytes[:min(n, len(p.bytes))]
		n -= len(p.bytes)
	}
	return parts
}

// offerPayload offers the memory of the payload that is next to gRPC.
func (s *scatterConn) offerPayload() {
	if len(s.ahead) > 0 && s.off == 0 && s.ahead[0].payload >= 0 {
		s.offered = s.ahead[0].payload
		s.frames.offerNext(s.payloads[s.offered])
	}
}

// withdrawPayload ends the offer. If it was taken, the memory is gRPC's.
func (s *scatterConn) withdrawPayload() {
	if s.offered >= 0 && s.frames.offerNext(nil) == nil {
		s.payloads[s.offered] = nil
	}
	s.offered = -1
}
