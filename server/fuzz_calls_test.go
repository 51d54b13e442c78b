package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// FuzzOpen opens any request: it is answered or refused, in few bytes, with a code that says what to do.
func FuzzOpen(f *testing.F) {
	n := newNode(f, &servertest.Engine{}, server.Options{})
	for _, text := range []string{
		plan, `{"source": {"root": "photos", "path": "../.."}}`, `{"source": {"fingerprint": "00"}}`, `{"transforms": [{"op": "Compose", "transforms": []}]}`,
	} {
		wire, err := proto.Marshal(&pb.OpenRequest{Protocol: pb.Protocol, Plan: text, Job: "job", Numerics: "numerics"})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := &pb.OpenRequest{}
		if proto.Unmarshal(wire, r) == nil {
			_, err := n.Open(t.Context(), r)
			answered(t, err)
		}
	})
}

// FuzzReplay is the same for Replay.
func FuzzReplay(f *testing.F) {
	n := newNode(f, &servertest.Engine{}, server.Options{ReplaySamples: 64})
	for _, name := range []*pb.Name{rangeOf(0, 0, 8), rangeOf(1<<31, ^uint64(0), 1<<31), {}, {Samples: &pb.Name_List{List: &pb.List{Indices: []uint64{1 << 63}, Repeats: []uint32{1}}}}} {
		wire, err := proto.Marshal(&pb.ReplayRequest{Plan: plan, Name: name, Pixels: true})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := &pb.ReplayRequest{}
		if proto.Unmarshal(wire, r) == nil {
			_, err := n.Replay(t.Context(), r)
			answered(t, err)
		}
	})
}

func answered(t *testing.T, err error) {
	t.Helper()
	s := status.Convert(err)
	switch s.Code() {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.ResourceExhausted:
	default:
		t.Errorf("%v", err)
	}
	if n := proto.Size(s.Proto()); n > 12<<10 {
		t.Errorf("%d bytes of error", n)
	}
}

// FuzzTokens: a file of tokens is read or refused, and no secret gets into the error or in by a part of it.
func FuzzTokens(f *testing.F) {
	f.Add("team-a 0123456789abcdef\n", "0123456789abcdef")
	f.Add("# x\r\n\x00 y\n", "")
	file := filepath.Join(f.TempDir(), "tokens")
	f.Fuzz(func(t *testing.T, text, secret string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		tokens, err := admission.ReadTokens(file, nil)
		if err != nil {
			return
		}
		if who, ok := tokens.Identity(secret); ok && (len(secret) < 16 || !strings.Contains(text, secret) || !strings.Contains(text, who)) {
			t.Errorf("%q is %q by %q", secret, who, text)
		}
	})
}
