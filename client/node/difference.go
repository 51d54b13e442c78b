package node

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/feedwater-io/feedwater/filename"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Side is a node and what it said of its data.
type Side struct {
	Node Replayer
	Info *pb.OpenResponse
}

// Replayer is what is used of a Node.
type Replayer interface {
	Addr() string
	Replay(context.Context, *pb.ReplayRequest) (*pb.ReplayResponse, error)
}

const (
	differenceTimeout = 10 * time.Second
	differenceStep    = 1000 // samples per Replay
)

// DescribeDifference says in words what is the first that differs between the data of two nodes.
func DescribeDifference(ctx context.Context, ours, theirs Side) string {
	a, b := ours.Info.Classes, theirs.Info.Classes
	first := uint64(0)
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return fmt.Sprintf(`it has one more class, "%s"`, filename.Name(b[i].Name))
		case i >= len(b):
			return fmt.Sprintf(`it lacks class "%s"`, filename.Name(a[i].Name))
		case !bytes.Equal(a[i].Name, b[i].Name):
			return fmt.Sprintf(`class %d is "%s" there and "%s" on %s`, i, filename.Name(b[i].Name), filename.Name(a[i].Name), ours.Node.Addr())
		case a[i].Digest != b[i].Digest || a[i].Samples != b[i].Samples:
			return fmt.Sprintf(`class "%s" has %d samples there and %d on %s`, filename.Name(a[i].Name), b[i].Samples, a[i].Samples, ours.Node.Addr()) +
				fileDifference(ctx, ours, theirs, first, first+max(a[i].Samples, b[i].Samples))
		}
		first += a[i].Samples
	}
	return "their classes look alike"
}

// fileDifference names the first sample in [from, to) that differs; nothing if that cannot be found out.
func fileDifference(ctx context.Context, ours, theirs Side, from, to uint64) string {
	ctx, cancel := context.WithTimeout(ctx, differenceTimeout)
	defer cancel()
	for at := from; at < to; at += differenceStep {
		end := min(at+differenceStep, to)
		a, err := listSamples(ctx, ours, at, min(end, ours.Info.Samples))
		if err != nil {
			return ""
		}
		b, err := listSamples(ctx, theirs, at, min(end, theirs.Info.Samples))
		if err != nil {
			return ""
		}
		if d := sampleDifference(a, b, ours.Node.Addr()); d != "" {
			return "; first difference: " + d
		}
	}
	return ""
}

func listSamples(ctx context.Context, s Side, from, to uint64) ([]*pb.Sample, error) {
	if from >= to {
		return nil, nil
	}
	list := &pb.List{}
	for i := from; i < to; i++ {
		list.Indices = append(list.Indices, i)
		list.Repeats = append(list.Repeats, 0)
	}
	name := &pb.Name{Samples: &pb.Name_List{List: list}}
	r, err := s.Node.Replay(ctx, &pb.ReplayRequest{Plan: s.Info.Plan, Numerics: s.Info.Numerics, Name: name})
	if err != nil {
		return nil, err
	}
	return r.Samples, nil
}

func sampleDifference(a, b []*pb.Sample, ourAddr string) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return fmt.Sprintf("%s is there alone", filename.Name(b[i].Key))
		case i >= len(b):
			return fmt.Sprintf("%s is on %s alone", filename.Name(a[i].Key), ourAddr)
		case !bytes.Equal(a[i].Key, b[i].Key):
			return fmt.Sprintf("%s there, %s on %s", filename.Name(b[i].Key), filename.Name(a[i].Key), ourAddr)
		case a[i].EncodedBytes != b[i].EncodedBytes:
			return fmt.Sprintf("%s has %d bytes there and %d on %s", filename.Name(a[i].Key), b[i].EncodedBytes, a[i].EncodedBytes, ourAddr)
		}
	}
	return ""
}
