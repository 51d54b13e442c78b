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
	pulseBytes = 28 // of a pulse packet, without its kind and its steps
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
	}
	if blocked := float(b[20:]); blocked > 0 { // negative: it is not; also not a number
		p.Blocked = durationpb.New(time.Duration(min(blocked, 1e6) * float64(time.Second)))
	}
	for b = b[pulseBytes:]; len(b) > 0; b = b[stepBytes:] {
		p.Steps = append(p.Steps, &pb.Step{
			Number: binary.LittleEndian.Uint64(b), Step: float(b[8:]), Wait: float(b[16:]), Idle: known(b[24:]), Transfer: known(b[32:]),
		})
	}
	return p, nil
}

func float(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

// known is nil for what is not a number: unknown.
func known(b []byte) *float64 {
	f := float(b)
	if math.IsNaN(f) {
		return nil
	}
	return &f
}

// pulse notes how the loop fares, and tells the nodes.
func (l *loader) pulse(p *pb.Pulse) {
	p.Host = l.agent.host
	l.mu.Lock()
	line, fleet := l.line, l.fleet
	l.mu.Unlock()
	line.Report(p, time.Now())
	if fleet != nil {
		fleet.Pulse(p)
	}
}
