package node

import (
	"bytes"
	"hash/crc32"
	"sync"
	"testing"

	"google.golang.org/grpc/mem"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/node/internal/streamcopy"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// framed is data as it comes from the transport.
func framed(data []byte) payload {
	p := payload{bytes: len(data)}
	for len(data) > 0 {
		n := min(len(data), 16<<10)
		p.frames = append(p.frames, mem.SliceBuffer(data[:n]))
		data = data[n:]
	}
	return p
}

// After revoke nobody writes, whatever was being copied.
func TestRevokeWaitsForTheCopy(t *testing.T) {
	data := bytes.Repeat([]byte{1}, 4<<20)
	p := framed(data)
	dst := make([]byte, len(data))
	cut := 0
	for range 100 {
		clear(dst)
		l := &lease{attempt: &Attempt{Request: batch.Request{Dst: dst}}}
		m := &pb.FetchResponse{Id: 1, Size: uint64(len(data)), Header: &pb.Header{Crc32C: crc32.Checksum(data, streamcopy.Castagnoli)}}
		var copying sync.WaitGroup
		begun := make(chan struct{})
		copying.Go(func() {
			close(begun)
			if _, err := l.copyPiece(m, p); err != nil {
				t.Error(err)
			}
		})
		<-begun
		l.revoke()
		written := dst[0] != 0
		for i := range dst {
			dst[i] = 2
		}
		copying.Wait()
		if i := bytes.IndexByte(dst, 1); i >= 0 {
			t.Fatalf("byte %d was written after revoke", i)
		}
		if written {
			cut++
		}
	}
	t.Logf("%d of 100 copies were under way", cut)
}

// What a node that breaks the rules may send.
func TestPiecesThatBreakTheRules(t *testing.T) {
	data := framed(make([]byte, 100))
	header := &pb.Header{}
	for name, pieces := range map[string][]*pb.FetchResponse{
		"no header":             {{Size: 100}},
		"does not begin at 0":   {{Offset: 1, Size: 200, Header: header}},
		"larger than the batch": {{Size: 99, Header: header}},
		"a gap":                 {{Size: 300, Header: header}, {Offset: 150, Size: 300}},
		"the same twice":        {{Size: 300, Header: header}, {Size: 300, Header: header}},
		"another size":          {{Size: 300, Header: header}, {Offset: 100, Size: 400}},
		"over the end":          {{Size: 150, Header: header}, {Offset: 100, Size: 150}},
		"offsets that wrap":     {{Offset: ^uint64(0), Size: 50, Header: header}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lease{attempt: &Attempt{Request: batch.Request{Dst: make([]byte, 1000)}}}
			for i, m := range pieces {
				answer, err := l.copyPiece(m, data)
				if last := i == len(pieces)-1; (err != nil) != last || answer != nil {
					t.Errorf("piece %d: %v, %v", i, answer, err)
				}
			}
		})
	}
	l := &lease{attempt: &Attempt{Request: batch.Request{Dst: make([]byte, 1000)}}}
	if _, err := l.copyPiece(&pb.FetchResponse{Size: 100, Header: header}, framed(nil)); err == nil {
		t.Error("an empty piece is taken")
	}
	grown := 0
	l = &lease{attempt: &Attempt{Request: batch.Request{Dst: make([]byte, 10), Grow: func(n int) []byte { grown = n; return nil }}}}
	answer, err := l.copyPiece(&pb.FetchResponse{Size: maxBatchBytes + 1, Header: header}, data)
	if err != nil || answer == nil || answer.Err == nil || grown != 0 {
		t.Errorf("a batch of absurd size: %v, %v, grown to %d", answer, err, grown)
	}
}
