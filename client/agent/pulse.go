package agent

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

const (
	pulseBytes = 29 // of a pulse packet, without its kind and its steps
	stepBytes  = 40
)

// parsePulse reads a pulse packet, without its kind.
func parsePulse(b []byte) (*pb.Pulse, error) {
	if len(b) < pulseBytes || (len(b)-pulseBytes)%stepBytes != 0 {
		return nil, fmt.Errorf("a pulse packet of %d bytes", len(b))
	}
	p := &pb.Pulse{
		Rank: binary.LittleEndian.Uint32(b), World: binary.LittleEndian.Uint32(b[4:]), Samples: binary.LittleEndian.Uint32(b[8:]),
		Ready: binary.LittleEndian.Uint32(b[12:]), Window: binary.LittleEndian.Uint32(b[16:]),
		IdleUnmeasured: b[28] != 0,
	}
	if blocked := readFloat(b[20:]); blocked > 0 { // negative: it is not; also not a number
		p.Blocked = durationpb.New(time.Duration(min(blocked, 1e6) * float64(time.Second)))
	}
	for b = b[pulseBytes:]; len(b) > 0; b = b[stepBytes:] {
		p.Steps = append(p.Steps, &pb.Step{
			Number: binary.LittleEndian.Uint64(b), Step: readFloat(b[8:]), Wait: readFloat(b[16:]), Idle: readOptional(b[24:]), Transfer: readOptional(b[32:]),
		})
	}
	return p, nil
}

func readFloat(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

// readOptional is nil for what is not a number: unknown.
func readOptional(b []byte) *float64 {
	f := readFloat(b)
	if math.IsNaN(f) {
		return nil
	}
	return &f
}
