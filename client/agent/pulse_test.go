package agent

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// pulsePacket is one as the Python package makes it.
func pulsePacket(blocked float64, steps ...[5]float64) []byte {
	b := []byte{kindPulse}
	for _, v := range []uint32{3, 4, 256, 5, 16} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = append(binary.LittleEndian.AppendUint64(b, math.Float64bits(blocked)), 1) // a GPU whose idle cannot be measured
	for _, s := range steps {
		b = binary.LittleEndian.AppendUint64(b, uint64(s[0]))
		for _, v := range s[1:] {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b
}

func TestPulseGoesToNodes(t *testing.T) {
	n := &fakeNode{pulses: make(chan *pb.Pulse, 4)}
	c := start(t, n)
	c.send(c.loader, pulsePacket(-1)) // before a plan is open: nobody's
	c.open(4, nil)
	c.send(c.loader, wantPacket(want{id: 1, count: 4}))
	c.done(want{id: 1, count: 4}) // the node is there now
	nan := math.NaN()
	c.send(c.loader, pulsePacket(1.5, [5]float64{7, 0.2, 0.1, nan, nan}, [5]float64{8, 0.3, 0, 0, 0.01}))
	p := <-n.pulses
	if p.Rank != 3 || p.World != 4 || p.Samples != 256 || p.Ready != 5 || p.Window != 16 || p.Blocked.AsDuration() != 1500*time.Millisecond || !p.IdleUnmeasured {
		t.Errorf("pulse %v", p)
	}
	if len(p.Steps) != 2 || p.Steps[0].Idle != nil || p.Steps[1].Number != 8 || p.Steps[1].GetStep() != 0.3 || p.Steps[1].Idle == nil || p.Steps[1].GetTransfer() != 0.01 {
		t.Errorf("steps %v", p.Steps)
	}
}

func FuzzParsePulse(f *testing.F) {
	f.Add(pulsePacket(-1, [5]float64{7, 0.2, 0.1, 0, 0})[1:])
	f.Add(pulsePacket(math.NaN())[1:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := parsePulse(b); err == nil && (len(p.Steps)*stepBytes+pulseBytes != len(b) || p.GetBlocked().AsDuration() < 0) {
			t.Errorf("%d bytes are %v", len(b), p)
		}
	})
}
