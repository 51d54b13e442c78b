package agent

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/feedwater-io/feedwater/filename"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Kinds of packets on a Loader's socket; docs/agent.md has the layouts.
const (
	kindCall      = 'C'
	kindWants     = 'W'
	kindCancel    = 'X'
	kindAnswer    = 'A'
	kindDone      = 'D'
	kindFailed    = 'E'
	kindCancelled = 'X'
	kindNotice    = 'N'
	kindPulse     = 'P'
	kindPolicy    = 'T'
	kindSpan      = 'S'
	kindReturned  = 'R'
	kindVersion   = 'V'
	kindLoader    = 'L' // on the control socket
)

const (
	maxPacket  = 64 << 10
	maxCall    = 64 << 20 // of a call whose text is in a file
	doneBytes  = 57       // of a done packet, without its JSON
	maxExtra   = maxPacket - doneBytes
	wantBytes  = 56
	flagListed = 1
)

// want is one record of a wants packet.
type want struct {
	id       uint64
	position uint64
	epoch    uint32
	count    uint32
	slot     uint32
	flags    uint32
	ahead    uint64 // batches that the loop takes before this one
	policy   uint64 // the number of the policy it is made by; 0: none
	step     uint64 // of the job; see client.Want.Step
}

// parseWants reads the records of a wants packet, without its kind.
func parseWants(b []byte) ([]want, error) {
	if len(b) == 0 || len(b)%wantBytes != 0 {
		return nil, fmt.Errorf("a wants packet of %d bytes", len(b))
	}
	wants := make([]want, 0, len(b)/wantBytes)
	for ; len(b) > 0; b = b[wantBytes:] {
		wants = append(wants, want{
			id:       binary.LittleEndian.Uint64(b),
			position: binary.LittleEndian.Uint64(b[8:]),
			epoch:    binary.LittleEndian.Uint32(b[16:]),
			count:    binary.LittleEndian.Uint32(b[20:]),
			slot:     binary.LittleEndian.Uint32(b[24:]),
			flags:    binary.LittleEndian.Uint32(b[28:]),
			ahead:    binary.LittleEndian.Uint64(b[32:]),
			policy:   binary.LittleEndian.Uint64(b[40:]),
			step:     binary.LittleEndian.Uint64(b[48:]),
		})
	}
	return wants, nil
}

// policies are those that wants name, by number. Of the reader's goroutine.
type policies map[uint64][]byte

// maxPolicies bounds how many numbers lie between the oldest policy kept and the newest: far more than wants are ahead
// of each other.
const maxPolicies = 1024

// storePolicy keeps the policy of a policy packet, without its kind, and forgets old ones.
func (p policies) storePolicy(b []byte) error {
	if len(b) < 8 {
		return fmt.Errorf("a policy packet of %d bytes", len(b))
	}
	number := binary.LittleEndian.Uint64(b)
	p[number] = append([]byte(nil), b[8:]...)
	maps.DeleteFunc(p, func(other uint64, _ []byte) bool { return other < number && number-other > maxPolicies })
	return nil
}

// parseCancel reads the ids of a cancel packet, without its kind.
func parseCancel(b []byte) ([]uint64, error) {
	if len(b) == 0 || len(b)%8 != 0 {
		return nil, fmt.Errorf("a cancel packet of %d bytes", len(b))
	}
	ids := make([]uint64, 0, len(b)/8)
	for ; len(b) > 0; b = b[8:] {
		ids = append(ids, binary.LittleEndian.Uint64(b))
	}
	return ids, nil
}

// call is a request with an answer.
type call struct {
	seq    uint32
	method string
	params json.RawMessage
}

// parseCall reads a call, without its kind. The text of one that does not fit a packet is in the file for the result.
func parseCall(b []byte, files []*os.File) (call, error) {
	if len(b) < 4 || len(files) == 0 {
		return call{}, fmt.Errorf("a call of %d bytes with %d handles", len(b), len(files))
	}
	text := b[4:]
	if len(text) == 0 {
		var err error
		if text, err = io.ReadAll(io.NewSectionReader(files[0], 0, maxCall)); err != nil {
			return call{}, fmt.Errorf("a call in a file: %w", err)
		}
	}
	var body struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return call{}, fmt.Errorf("a call that is no JSON: %w", err)
	}
	return call{binary.LittleEndian.Uint32(b), body.Method, body.Params}, nil
}

func answerPacket(seq uint32, ok bool, jsonBytes, blobBytes int) []byte {
	b := []byte{kindAnswer}
	b = binary.LittleEndian.AppendUint32(b, seq)
	if ok {
		b = append(b, 1, 0, 0, 0)
	} else {
		b = append(b, 0, 0, 0, 0)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(jsonBytes))
	return binary.LittleEndian.AppendUint64(b, uint64(blobBytes))
}

// donePacket answers a want. extra is nil or JSON.
func donePacket(w want, window int, index *pb.IndexUse, extra []byte) []byte {
	b := append(make([]byte, 0, doneBytes+len(extra)), kindDone)
	b = binary.LittleEndian.AppendUint64(b, w.id)
	b = binary.LittleEndian.AppendUint32(b, w.slot)
	b = binary.LittleEndian.AppendUint32(b, w.count)
	b = binary.LittleEndian.AppendUint32(b, uint32(window))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(extra)))
	for _, n := range []uint32{index.GetHits(), index.GetCopies(), index.GetMisses(), index.GetMissingCopies()} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	b = binary.LittleEndian.AppendUint64(b, index.GetMissingCopyBytes())
	b = binary.LittleEndian.AppendUint32(b, index.GetMadeCopies())
	b = binary.LittleEndian.AppendUint32(b, index.GetKept())
	return append(b, extra...)
}

func cancelledPacket(id uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{kindCancelled}, id)
}

func noticePacket(level, message string) []byte {
	b, _ := json.Marshal(map[string]string{"level": level, "message": clipMessage(message)})
	return append([]byte{kindNotice}, b...)
}

// maxMessage bounds the texts that go into one packet.
const maxMessage = 16 << 10

func clipMessage(s string) string {
	if len(s) > maxMessage {
		s = filename.Clip(s, maxMessage) + " …"
	}
	return filename.Text(s)
}
