//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"

	"github.com/feedwater-io/feedwater/server/servertest"
)

// worker is one of those that attack at once. It has at most one connection that speaks HTTP/2.
type worker struct {
	target *target
	ctx    context.Context
	wire   *wire
	turn   int

	insider *insider    // nil: none yet
	config  *tls.Config // of its connections; nil: none yet

	mu    sync.Mutex
	conns []net.Conn
}

const patience = 30 * time.Second // with an answer

// dialer is at an address of its own. It leaves no port in use behind it: there are not enough for floods.
var dialer = net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: patience}

// dial connects, and remembers the connection until it is closed by drop, or the stretch ends.
func (w *worker) dial() (*net.TCPConn, error) {
	c, err := dialer.DialContext(w.ctx, "tcp", w.target.Addr)
	if err != nil {
		return nil, err
	}
	t := c.(*net.TCPConn)
	_ = t.SetLinger(0)
	_ = t.SetDeadline(time.Now().Add(patience))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, t)
	if w.ctx.Err() != nil {
		_ = t.Close()
	}
	return t, nil
}

// drop closes the oldest connections but for so many.
func (w *worker) drop(keep int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; len(w.conns) > keep; w.conns = w.conns[1:] {
		_ = w.conns[0].Close()
	}
}

// hangUp closes all connections, whatever is done with them.
func (w *worker) hangUp() { w.drop(0) }

func (w *worker) close() {
	w.hangUp()
	if w.insider != nil {
		w.insider.close()
	}
}

// config is the TLS of a connection that shows a certificate, if there is one.
func config(shown *servertest.Pair) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // an attacker does not mind
	if shown == nil {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(shown.Cert, shown.Key)
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return c, err
}

// secure connects and shakes hands. What a worker shows it shows every time.
func (w *worker) secure(shown *servertest.Pair) (*tls.Conn, error) {
	if w.config == nil {
		t, err := config(shown)
		if err != nil {
			return nil, err
		}
		w.config = t
	}
	raw, err := w.dial()
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, w.config)
	return c, c.Handshake()
}

// wire is a connection that speaks HTTP/2 as badly as it likes. What it writes is sent by flush.
type wire struct {
	*http2.Framer
	conn    net.Conn
	out     *bufio.Writer
	block   bytes.Buffer
	hpack   *hpack.Encoder
	decoder *hpack.Decoder
	next    uint32 // stream
}

// connected is the worker's connection, made anew where there is none.
func (w *worker) connected() (*wire, error) {
	if w.wire != nil {
		return w.wire, nil
	}
	c, err := w.secure(nil)
	if err != nil {
		w.hangUp()
		return nil, err
	}
	x := &wire{conn: c, out: bufio.NewWriterSize(c, 64<<10), decoder: hpack.NewDecoder(4096, nil), next: 1}
	x.Framer = http2.NewFramer(x.out, bufio.NewReaderSize(c, 64<<10))
	x.hpack = hpack.NewEncoder(&x.block)
	_, _ = io.WriteString(x.out, http2.ClientPreface)
	_ = x.WriteSettings()
	w.wire = x
	return x, nil
}

// lost is the answer when a connection is gone.
func (w *worker) lost(err error) []string {
	w.wire = nil
	w.hangUp()
	return []string{ending(err)}
}

// ending is what an error says of how a connection ended.
func ending(err error) string {
	var alert tls.AlertError
	switch {
	case errors.As(err, &alert):
		return "TLS: " + strings.TrimPrefix(alert.Error(), "tls: ")
	case strings.Contains(err.Error(), "remote error: tls: "):
		_, text, _ := strings.Cut(err.Error(), "remote error: tls: ")
		return "TLS: " + text
	case errors.Is(err, context.DeadlineExceeded), strings.Contains(err.Error(), "i/o timeout"):
		return "nothing"
	}
	return hungUp
}

const hungUp = "hung up"

// begin begins a call on the next stream; more are headers, in pairs.
func (x *wire) begin(method string, more ...string) (id uint32, err error) {
	id = x.next
	x.next += 2
	x.block.Reset()
	fields := append([]string{
		":method", "POST", ":scheme", "https", ":path", "/feedwater.v1.Feed/" + method, ":authority", "node",
		"content-type", "application/grpc", "te", "trailers",
	}, more...)
	for i := 0; i < len(fields); i += 2 {
		if err := x.hpack.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			return 0, err
		}
	}
	return id, x.headers(id, x.block.Bytes())
}

const frameBytes = 16 << 10

// headers sends a block of them in frames.
func (x *wire) headers(id uint32, block []byte) error {
	first := block[:min(len(block), frameBytes)]
	block = block[len(first):]
	err := x.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndHeaders: len(block) == 0})
	for err == nil && len(block) > 0 {
		part := block[:min(len(block), frameBytes)]
		block = block[len(part):]
		err = x.WriteContinuation(id, len(block) == 0, part)
	}
	return err
}

// message sends one of gRPC's messages of at most 48 KiB, said to be of so many bytes, and ends the call.
func (x *wire) message(id uint32, compressed bool, length int, b []byte) error {
	all := make([]byte, 5, 5+len(b))
	if compressed {
		all[0] = 1
	}
	binary.BigEndian.PutUint32(all[1:], uint32(length))
	all = append(all, b...)
	for {
		part := all[:min(len(all), frameBytes)]
		all = all[len(part):]
		if err := x.WriteData(id, len(all) == 0, part); err != nil || len(all) == 0 {
			return err
		}
	}
}

// answers sends what is written and reads until so many calls are answered.
func (x *wire) answers(calls int) ([]string, error) {
	if err := x.out.Flush(); err != nil {
		return nil, err
	}
	_ = x.conn.SetDeadline(time.Now().Add(patience))
	var all []string
	x.decoder.SetEmitFunc(func(f hpack.HeaderField) {
		if f.Name == "grpc-status" {
			code, _ := strconv.Atoi(f.Value)
			all = append(all, codes.Code(code).String())
		}
	})
	for len(all) < calls {
		f, err := x.ReadFrame()
		if err != nil {
			return all, err
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			if _, err := x.decoder.Write(f.HeaderBlockFragment()); err != nil {
				return all, err
			}
		case *http2.RSTStreamFrame:
			if f.ErrCode != http2.ErrCodeNo {
				all = append(all, f.ErrCode.String())
			}
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = x.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = x.WritePing(true, f.Data)
			}
		}
	}
	return all, nil
}
